"""Runs with a model of the Hub: to translate, and with `input.format: text` to make sources."""

import gzip
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.engine.shards import content_key
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.nmt import NmtOptions, Translator
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.families.table import M2M100
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.corpus.estimate import estimate
from paraloom.pipeline.commands.run.status import status
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.plan import PlannedStage
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import stages as all_stages
from tests.beam_jobs.bitext.test_bitext import made_id
from tests.run_helpers import (
    Capsys,
    HubModel,
    Runs,
    WriteConfig,
    again,
    kill_in,
    manifest,
    one_line,
    ran,
    refusal,
    table,
)
from tests.small_model import new_pairs

SCORERS = ["translation_score", "trigram_overlap", "reference_score", "source_score", "dual_score"]


@pytest.fixture
def write_text(
    write_config: WriteConfig, nmt_model: Path, hub_model: HubModel
) -> Callable[..., Path]:
    """Write the configuration of a run on 60 lines of text in `folder`, with some keys changed."""

    def write(folder: Path, **options: Any) -> Path:
        # The forward model reads Czech and not English, which would be found.
        lines = [czech for czech, _ in new_pairs(40)]
        lines = [*lines, *lines[:15], "", "tab\there", "slovo " * 100, "Ano.", lines[0]]
        text = "".join(f"{line}\n" for line in lines).encode()
        (folder / "text.en.gz").write_bytes(gzip.compress(text))
        nmt = {"model": str(nmt_model), "forward_model": str(hub_model("marian"))}
        return write_config(
            folder,
            input={
                "format": "text",
                "paths": [str(folder / "text.en.gz")],
                "check_languages": False,
                **options,
            },
            nmt={**nmt, "max_source_subwords": 60, "candidates": 2},
            score={"scorers": SCORERS},
            select={"by": "reference_score", "deciles": [4, 5, 6, 7, 8, 9]},
        )

    return write


def test_the_round_trip(
    tmp_path: Path,
    write_text: WriteConfig,
    nmt_model: Path,
    hub_model: HubModel,
    capsys: Capsys,
    runs: Runs,
) -> None:
    write_text(tmp_path)
    assert again("select", tmp_path) == 0
    _, err = capsys.readouterr()
    stages = ["ingest", "pivot", "back_translate", "translation_model", "forward_model", "score"]
    stages += ["bucket", "select"]
    assert ran(err) == stages
    text, pivot, pairs = (table(tmp_path, name) for name in ("ingest", "pivot", "bucket"))
    assert text.column_names == ["id", "reference"]
    seen, ids = Counter[str](), []
    for sentence in text["reference"].to_pylist():
        seen[sentence] += 1
        number = f"-{seen[sentence]}" if seen[sentence] > 1 else ""
        ids.append(made_id("", sentence) + number)
    assert text["id"].to_pylist() == ids and seen.total() >= len(seen) + 15
    reasons = table(tmp_path, "ingest/_rejected")["reason"].to_pylist()
    assert reasons == ["empty line", "control character U+0009 in reference"]

    options = NmtOptions(beam=2, max_source_subwords=60)
    forward = Translator(hub_model("marian"), options, threads=1)
    made, _ = forward.translate(pivot["reference"])
    assert pivot.column_names == ["id", "source", "reference"]
    assert pivot["source"].to_pylist() == made["translation"].to_pylist()
    reasons = table(tmp_path, "pivot/_rejected")["reason"].to_pylist()
    assert "reference of more than 60 subwords" in reasons

    back = Translator(nmt_model, options.replace(candidates=2), threads=1)
    first = pairs.filter(pa.array(np.equal(pairs["candidate"].to_numpy(), 0)))
    wanted, _ = back.translate(first["source"])
    assert first["translation"].to_pylist() == wanted["translation"].to_pylist()[::2]
    scores = back.score(first["source"].to_pylist(), first["reference"].to_pylist())
    np.testing.assert_allclose(first["reference_score"].to_numpy(), scores, atol=1e-5)
    columns = (first[name].to_pylist() for name in ("id", "reference_score"))
    by_source = dict(zip(*columns, strict=True))
    for row in pairs.select(["id", "reference_score"]).to_pylist():  # candidates have that of 0
        assert row["reference_score"] == by_source.get(row["id"], row["reference_score"])

    texts = (pairs[name].to_pylist() for name in ("translation", "source"))
    found = pairs["source_score"].to_numpy()
    np.testing.assert_allclose(found, forward.score(*texts), atol=1e-5)
    there = pairs["translation_score"].to_numpy()
    agreement = np.exp(-np.abs(there - found) + (there + found) / 2)
    np.testing.assert_allclose(pairs["dual_score"].to_numpy(), agreement, atol=1e-5)

    record = manifest(tmp_path)["stages"]
    assert record["forward_model"]["model"]["sha256"] == record["pivot"]["model"]["sha256"]
    assert record["pivot"]["rows_in"] == 58
    assert record["pivot"]["model"]["license"] == "cc-by-4.0"
    assert record["back_translate"]["model"]["sha256"] == digest(nmt_model)
    assert record["back_translate"]["model"]["compute_types"] == ["float32"]
    card = (tmp_path / "run" / "README.md").read_text()
    assert "`model` (Marian), licence cc-by-4.0" in " ".join(card.split())
    assert "machine translation into `cs` (`source`) and back" in card
    assert "pivot" in (tmp_path / "run" / "report" / "index.html").read_text()
    assert main(["explain", str(tmp_path / "run"), made_id("", "slovo " * 99 + "slovo")]) == 0
    assert "rejected by pivot: reference of more than 60 subwords" in capsys.readouterr().out

    # Another forward model makes all anew.
    assert runs("select", tmp_path, "--set", "select.deciles=[9]") == ["select"]
    change = ["--set", f"nmt.forward_model={nmt_model}"]
    assert runs("back-translate", tmp_path, *change) == ["pivot", "back_translate"]


def test_equal_lines_of_shards_are_translated_once(tmp_path: Path, write_text: WriteConfig) -> None:
    write_text(tmp_path, unique="source")
    kill_in("pivot", tmp_path, "_receipts/part-*.json")
    stopped = {stage.name: stage for stage in status(str(tmp_path / "run"))}
    assert (stopped["pivot"].state, stopped["pivot"].rows[1]) == ("stopped", 58)
    assert again("select", tmp_path) == 0
    stages = manifest(tmp_path)["stages"]
    references = table(tmp_path, "ingest")["reference"].to_pylist()
    parts = sorted((tmp_path / "run" / "ingest").glob("part-*.parquet"))
    shards = [pq.read_table(part)["reference"].to_pylist() for part in parts]
    repeats = sum(len(shard) - len(set(shard)) for shard in shards)
    saved = [stages[name]["saved"]["input.unique"]["rows"] for name in ("pivot", "back_translate")]
    assert saved[1] >= saved[0] == repeats > 0

    found = estimate(read_config(tmp_path / "config.yaml"))
    assert list(found.jobs) == ["ingest", "pivot", "back_translate", "score", "bucket", "select"]
    assert found.jobs["pivot"].rows == len(set(references))
    made = stages["score"]["rows_in"]
    assert found.jobs["score"].rows == pytest.approx(made, rel=0.05)
    assert found.left_out == []


def test_errors_about_the_forward_model_name_the_right_key() -> None:
    languages = Languages("cs", "cz").reversed()
    assert (languages.source, languages.target) == ("cz", "cs")
    with pytest.raises(UserError, match=r"^input\.target_language: the model has no language 'cz'"):
        M2M100.layout(["__cs__", "__en__"], languages)


def test_keys_are_as_before(write_config: WriteConfig, tmp_path: Path, nmt_model: Path) -> None:
    config = read_config(write_config(tmp_path))
    run = Run.open(config)
    stages = all_stages()
    decoding = ["ctranslate2", "auto", 2, None, 200, digest(nmt_model)]
    expected = content_key("back_translate", 2, decoding, {"ingest": None})
    assert PlannedStage(run, stages["back_translate"]).key() == expected
    assert PlannedStage(run, stages["score"]).key() == content_key(
        "score", 1, ["translation_score", "trigram_overlap"], {"back_translate": None}
    )
    assert not stages["pivot"].enabled(config)
    assert config.input
    sampled = {"candidates": 1, "sampling": {"top_k": 10, "temperature": 1.0}}
    for nmt, unique, more in (
        ({}, "source", ["unique source"]),
        (sampled, None, [[1, sampled["sampling"]], 1]),
        (sampled, "source", [[1, sampled["sampling"]], 1, "unique source"]),
    ):
        sections = {"nmt": config.nmt.replace(**nmt), "input": config.input.replace(unique=unique)}
        changed = config.replace(**sections)
        run = Run.open(changed)
        expected = content_key("back_translate", 2, [*decoding, *more], {"ingest": None})
        assert PlannedStage(run, stages["back_translate"]).key() == expected


@pytest.fixture
def marian_run(hub_model: HubModel, write_config: WriteConfig, tmp_path: Path) -> Path:
    """The configuration of a run with a copy of a Marian model, which may be broken."""
    model = shutil.copytree(hub_model("marian"), tmp_path / "opus")
    options = {"beam": 2, "max_source_subwords": 60, "compute_type": "auto", "device": "cpu"}
    return write_config(tmp_path, nmt={"model": str(model), **options})


def test_a_bad_model_is_found_at_once(marian_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    select = ["select", "--config", str(marian_run)]
    (tmp_path / "opus" / "source.spm").unlink()
    assert "the tokeniser is missing from the model folder (source.spm)" in refusal(capsys, *select)
    assert main([*select, "--set", "nmt.model=t5-small"]) == 2
    assert "; a model of the Hub is named owner/name" in one_line(capsys)
    assert not (tmp_path / "run").exists()


def test_weights_are_read_after_ingest(marian_run: Path, tmp_path: Path, capsys: Capsys) -> None:
    weights = tmp_path / "opus" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert main(["select", "--config", str(marian_run)]) == 2
    *stages, line = capsys.readouterr().err.strip().splitlines()
    assert stages == ["ingest …", "back_translate …"]
    assert line.startswith(f"paraloom: {tmp_path}/opus: the weights cannot be read")
