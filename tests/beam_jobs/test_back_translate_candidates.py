"""Back-translation with several translations of a source."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paraloom.models.nmt.translate
from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Unit, units
from paraloom.beam_jobs.runners.launch import Result
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.nmt.options import NmtOptions, SamplingOptions
from paraloom.models.nmt.translate import SCHEMA, Counters
from tests.shards import cut, rows_of, shards_of
from tests.small_model import new_pairs

N_BEST = NmtOptions(beam=4, candidates=3)
SAMPLED = NmtOptions(candidates=3, sampling=SamplingOptions(top_k=5))


def write(folder: Path, sources: list[str]) -> list[Unit]:
    rows = [{"id": f"id-{i}", "source": s, "reference": "r"} for i, s in enumerate(sources)]
    table = pa.Table.from_pylist(rows, schema.INGEST)
    return units(cut(folder / "ingest", table, 4), "key", candidates=3)


@pytest.fixture
def work(tmp_path: Path) -> list[Unit]:
    """Twelve sentences in shards of four, one of them empty."""
    return write(tmp_path, ["", *(czech for czech, _ in new_pairs(11))])


def run(
    work: list[Unit],
    out: Path,
    model: Path,
    options: NmtOptions,
    *,
    workers: int = 1,
    seed: int = 1,
    distinct: bool = False,
) -> Result:
    factory = TranslatorFactory(str(model), options)
    job = back_translate.TranslationJob(model=factory, seed=seed, distinct=distinct)
    return back_translate.run(work, str(out), job, ["--direct_num_workers", str(workers)])


def tables(result: Result) -> list[pa.Table]:
    return [pq.read_table(shard.path) for shard in shards_of(result)]


@pytest.mark.parametrize("options", [N_BEST, SAMPLED], ids=["n-best", "sampled"])
def test_rows_are_conserved(
    tmp_path: Path, work: list[Unit], nmt_model: Path, options: NmtOptions
) -> None:
    result = run(work, tmp_path / "out", nmt_model, options)
    rows, rejected = rows_of(result), rows_of(result, rejected=True)
    empty = {(row["id"], row["candidate"]) for row in rejected if row["reason"] == "empty source"}
    assert empty == {("id-0", candidate) for candidate in range(3)}
    found = {(row["id"], row["candidate"]) for row in [*rows, *rejected]}
    assert found == {(f"id-{i}", candidate) for i in range(12) for candidate in range(3)}
    assert len(rows) + len(rejected) == 36 == sum(receipt.rows_in for receipt in result.receipts)
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["id"], []).append(row["translation_score"])
    assert all(np.all(np.diff(of) <= 1e-6) for of in scores.values())


@pytest.mark.parametrize("distinct", [False, True])
def test_candidates_keep_the_order_of_the_translator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: bool
) -> None:
    """Also of sources that repeat in their shard."""
    work = write(tmp_path, [f"source {i % 3}" for i in range(12)])

    class Counting:
        converted = compute_type = None

        def __init__(self, *args: Any, **more: Any) -> None:
            pass

        def translate(
            self, sentences: pa.Array, *args: Any, **more: Any
        ) -> tuple[pa.RecordBatch, Counters]:
            rows = [
                {"translation": f"{text} {k}", "translation_score": -k, "translation_subwords": 1}
                for text in sentences.to_pylist()
                for k in range(3)
            ]
            counters = Counters(sentences=len(sentences), seconds=0.1)
            return pa.RecordBatch.from_pylist(rows, SCHEMA), counters

    monkeypatch.setattr(paraloom.models.nmt.translate, "Translator", Counting)
    result = run(work, tmp_path / "out", tmp_path, N_BEST, distinct=distinct)
    rows = rows_of(result)
    assert [row["id"] for row in rows] == [f"id-{i // 3}" for i in range(36)]
    assert [row["candidate"] for row in rows] == [0, 1, 2] * 12
    for row in rows:
        assert row["translation"] == f"{row['source']} {row['candidate']}"
        assert row["translation_score"] == -row["candidate"]


def test_the_first_candidate_is_the_only_one_of_a_run_with_one(
    tmp_path: Path, work: list[Unit], nmt_model: Path
) -> None:
    several = pa.concat_tables(tables(run(work, tmp_path / "several", nmt_model, N_BEST)))
    single = [replace(unit, candidates=1) for unit in work]
    one = N_BEST.replace(candidates=1)
    alone = pa.concat_tables(tables(run(single, tmp_path / "one", nmt_model, one)))
    assert several.schema == schema.translated(candidates=True)
    assert alone.schema == schema.BACK_TRANSLATE
    best = several.filter(pa.array(several["candidate"].to_numpy() == 0))
    assert best.drop_columns(["candidate"]).equals(alone)


def test_samples_depend_on_the_seed_and_the_shards_alone(
    tmp_path: Path, work: list[Unit], nmt_model: Path
) -> None:
    whole = tables(run(work, tmp_path / "whole", nmt_model, SAMPLED))
    again = tables(run(work[::-1], tmp_path / "again", nmt_model, SAMPLED, workers=2))
    assert [table.to_pylist() for table in again[::-1]] == [table.to_pylist() for table in whole]
    resumed = tmp_path / "resumed"
    run(work[1:2], resumed, nmt_model, SAMPLED)
    assert [t.to_pylist() for t in tables(run(work, resumed, nmt_model, SAMPLED))] == [
        table.to_pylist() for table in whole
    ]
    other = tables(run(work, tmp_path / "other", nmt_model, SAMPLED, seed=2))
    assert [table.to_pylist() for table in other] != [table.to_pylist() for table in whole]
