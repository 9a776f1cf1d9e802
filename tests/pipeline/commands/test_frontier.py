from pathlib import Path

from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, changed_manifest, one_line


def test_selections_of_equal_size(a_run: Path, capsys: Capsys) -> None:
    run = str(a_run / "run")
    assert main(["frontier", run]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "trigram_overlap <= ┃ translation_score >= ┃ pairs" in out
    assert "the run's" in out
    with changed_manifest(a_run) as content:
        content["config"]["select"]["where"] = ["trigram_overlap >= 1", "trigram_overlap <= 0"]
    assert main(["frontier", run]) == 2
    assert "needs selected pairs, and a score of difference" in one_line(capsys)
