import json
from pathlib import Path

from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, one_line


def test_selections_of_equal_size(a_run: Path, capsys: Capsys) -> None:
    run = a_run / "run"
    assert main(["frontier", str(run)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "trigram_overlap <= ┃ translation_score >= ┃ pairs" in out
    assert "the run's" in out
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["config"]["select"]["where"] = ["trigram_overlap >= 1", "trigram_overlap <= 0"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["frontier", str(run)]) == 2
    assert "needs selected pairs, and a score of difference" in one_line(capsys)
