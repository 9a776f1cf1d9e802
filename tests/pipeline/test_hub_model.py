"""A whole corpus with a model from the Hub, through the real command."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paraloom.models.nmt import NmtOptions, Translator
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, HubModel, WriteConfig, manifest, one_line

from .conftest import ROWS


@pytest.fixture
def marian_run(hub_model: HubModel, write_config: WriteConfig, tmp_path: Path) -> Path:
    """The configuration of a run with a model of its own."""
    model = shutil.copytree(hub_model("marian"), tmp_path / "opus")
    return write_config(
        tmp_path,
        nmt={
            "model": str(model),
            "beam": 2,
            "max_source_subwords": 60,
            "compute_type": "auto",
            "device": "cpu",
        },
    )


def test_the_corpus_is_made_with_it(marian_run: Path, tmp_path: Path) -> None:
    select = ["select", "--config", str(marian_run)]
    assert main(select) == 0
    stages = manifest(tmp_path)["stages"]
    model = stages["back_translate"]["model"]
    assert (model["family"], model["license"]) == ("Marian", "cc-by-4.0")
    assert stages["ingest"]["rows_out"] == ROWS - 1
    rows = pq.read_table(sorted((tmp_path / "run" / "back_translate").glob("part-*.parquet")))
    found = Translator(tmp_path / "opus", NmtOptions(beam=2, max_source_subwords=60), threads=1)
    expected, _ = found.translate(rows["source"])
    assert model["converted"] == [found.converted]
    assert model["compute_types"] == ["float32"]
    assert rows["translation"].to_pylist() == expected["translation"].to_pylist()
    card = (tmp_path / "run" / "README.md").read_text()
    assert "CTranslate2 (float32), beam 2" in card
    assert "model `opus` (Marian), licence" in card
    assert "cc-by-4.0" in card
    # It has one language only, so the target's name changes nothing.
    assert main([*select, "--set", "input.target_language=eng"]) == 0
    assert manifest(tmp_path)["stages"]["back_translate"] == stages["back_translate"]


def test_a_bad_model_is_found_before_any_work(
    marian_run: Path, tmp_path: Path, capsys: Capsys
) -> None:
    (tmp_path / "opus" / "source.spm").unlink()
    assert main(["select", "--config", str(marian_run)]) == 2
    line = one_line(capsys)
    assert "the tokeniser is missing from the model folder (source.spm)" in line
    assert not (tmp_path / "run").exists()


def test_a_model_that_is_nowhere(marian_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    assert main(["select", "--config", str(marian_run), "--set", "nmt.model=t5-small"]) == 2
    assert "; a model of the Hub is named owner/name" in one_line(capsys)
    assert not (tmp_path / "run").exists()


def test_weights_are_read_after_ingest(marian_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    weights = tmp_path / "opus" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert main(["select", "--config", str(marian_run)]) == 2
    *stages, line = capsys.readouterr().err.strip().splitlines()
    assert stages == ["ingest …", "back_translate …"]
    assert line.startswith(f"paraloom: {tmp_path}/opus: the weights cannot be read")
