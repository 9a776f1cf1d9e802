"""The sample in `pipeline/sample` holds what its page lists, broken rows included."""

import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from benchmarks.sample_model import ship
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.options import NmtTrainingOptions
from paraloom.pipeline.cli import main
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run import make
from tests.run_helpers import Capsys, Patch, again, table
from tests.sample import MODEL, SAMPLE, sample_config

PAGE = (SAMPLE / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of which `ingest` has read the sample."""
    folder = tmp_path_factory.mktemp("sample")
    config = sample_config(run=str(folder / "run"))
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert again("ingest", folder) == 0
    return folder


def test_every_broken_row_is_rejected_for_the_reason_on_the_page(ingested: Path) -> None:
    rejected = Counter(
        re.sub(r"^[1-3] columns? ", "1 column ", re.sub(r"U\+\w+", "U+0000", reason))
        for reason in table(ingested, "ingest/_rejected")["reason"].to_pylist()
    )
    assert set(rejected.values()) == {10} and len(rejected) == 8
    assert [reason for reason in rejected if f"`{reason}`" not in PAGE] == []
    assert table(ingested, "ingest").num_rows + rejected.total() == 10_160
    assert "10,160 rows" in PAGE


def test_the_model_is_small_and_of_the_configuration() -> None:
    """`make sample-model` trains what `nmt.model: null` would; the card has its figures."""
    report, card = (
        json.loads((MODEL / "training.json").read_text()),
        (MODEL / "README.md").read_text(),
    )
    nmt = read_config("sample").nmt
    assert nmt.model == str(MODEL) and open_model(MODEL).languages == ("cs", "en")
    assert NmtTrainingOptions.of(report["options"]) == nmt.training
    assert f"{report['bleu']:.1f}" in card and f"{nmt.training.updates:,} updates" in card
    assert sum(path.stat().st_size for path in MODEL.iterdir()) < 6_000_000


def test_the_card_of_the_model_is_what_make_sample_model_writes(tmp_path: Path) -> None:
    ship(MODEL, tmp_path / "model")
    assert (tmp_path / "model/README.md").read_bytes() == (MODEL / "README.md").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["corpus", "--config", "sample"], True),
        (["select", "--config", "sample"], False),
        (["corpus", "--config", str(SAMPLE / "sample.yaml")], False),
    ],
)
def test_the_first_run_says_how_long_it_takes_and_what_to_do_next(
    arguments: list[str], said: bool, monkeypatch: Patch, capsys: Capsys
) -> None:
    run = SimpleNamespace(config=SimpleNamespace(run="runs/sample"))
    monkeypatch.setattr(make, "run_stages", lambda *_, **__: run)
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert ("explain runs/sample " in out and "init FILES" in out) == said
    assert ("20 s" in err) == said and (said or not out + err)
