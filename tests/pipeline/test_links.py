"""Links in a run from elsewhere: no stage removes files outside the run."""

from pathlib import Path

import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline import run
from paraloom.pipeline.config import Config


@pytest.mark.parametrize(
    "name", ["corpus", "corpus/receipts", "corpus/rejected", "logs", "report", "rounds"]
)
def test_a_link_out_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    link, elsewhere = tmp_path / "run" / name, tmp_path / "elsewhere"
    link.parent.mkdir(parents=True)
    precious = [elsewhere / file for file in ("a.parquet", "a.json", "2/.corpus.x/a", "corpus.log")]
    for path in precious:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious")
    link.symlink_to(elsewhere)
    monkeypatch.setattr(run, "check", lambda config, stages: None)  # of files that are not there
    config = Config.model_validate(
        {
            "run": f"{tmp_path}/run",
            "input": {"format": "tsv", "paths": [f"{tmp_path}/no.tsv"]},
            "nmt": {"model": f"{tmp_path}/no-model"},
            "select": {"by": "trigram_overlap"},
            "score": {"scorers": ["trigram_overlap"]},
        }
    )
    with pytest.raises(UserError) as error:
        run.run_stages(config, ["corpus"], force=True)
    assert str(error.value).startswith(f"{link}: this link leads out of {tmp_path}/run, and files")
    assert [path.read_text() for path in precious] == ["precious"] * 4


def test_links_that_may_be(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    (folder / "rounds" / "2" / "corpus").mkdir(parents=True)
    (folder / "corpus").symlink_to("rounds/2/corpus")
    (tmp_path / "data").mkdir()
    (folder / "mine").symlink_to(tmp_path / "data")  # in no stage
    (tmp_path / "run").symlink_to(folder)
    run.check_links(str(tmp_path / "run"))
    run.check_links("s3://bucket/run")
    (folder / "nmt.training").mkdir()
    (folder / "nmt.training" / "checkpoints").symlink_to(tmp_path / "data")
    with pytest.raises(UserError, match=r"/run/nmt\.training/checkpoints: this link leads out"):
        run.check_links(str(tmp_path / "run"))
