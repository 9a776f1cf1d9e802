"""The pairs that the automatic selection is compared on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.auto_select import prepare
from benchmarks.experiments.cells import Inputs, folder_of
from paraloom.beam_jobs.engine.shards import commit
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.pipeline.run.records import DecileTrial
from tests.benchmarks.conftest import inputs_in
from tests.run_helpers import write_record

RUN = DecileTrial(scorer="unigram_f1", deciles=(0, 1), pairs=20, scores=(1.0,)).model_dump()


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """A run of 100 pairs, 20 of them chosen; a tenth has too many tokens."""
    names = {"id": "id-", "reference": "sentence ", "translation": "phrase "}
    columns: dict[str, Any] = {n: [f"{of}{i}" for i in range(100)] for n, of in names.items()}
    columns |= {"reference_tokens": ([2] * 9 + [31]) * 10, "translation_tokens": [2] * 100}
    columns["unigram_f1_decile"] = pa.array([i // 10 for i in range(100)], pa.int8())
    table = pa.table(columns)
    nothing = pa.table({"id": pa.array([], pa.string()), "reason": pa.array([], pa.string())})
    for stage, rows in (("bucket", 100), ("corpus", 20)):
        pieces = [("part-0", table.slice(0, rows), nothing)]
        commit(str(tmp_path / "run" / stage), "part-0", "key", rows, pieces, started=0.0)
    choice = {"trials": [RUN], "chosen": RUN}
    config = {
        "run": "run",
        "input": {"format": "tsv", "paths": ["x.tsv"]},
        "seed": 1,
        "score": {"scorers": ["unigram_f1"]},
        "select": {"by": "unigram_f1", "max_tokens": 30, "where": []},
        "embeddings": EmbeddingOptions(dim=7).model_dump(),
    }
    record = {"config": config, "stages": {"auto_select": choice, "select": {}}}
    write_record(tmp_path / "run", record)
    return replace(inputs_in(tmp_path, tmp_path / "cells"), corpus=tmp_path / "run" / "corpus")


def test_as_many_at_random_and_all_that_could_be_selected(inputs: Inputs) -> None:
    table = prepare(inputs.corpus.parent, inputs, 2)
    chosen, random, everything = table.rows.values()
    assert next(iter(table.rows)) == "chosen: unigram f1, deciles 0–1"
    assert {cell.options.dim for cell in table.rows.values()} == {7}
    found = {
        (cell.pairs, seed): pq.read_table(folder_of(cell, seed, inputs))["reference"].to_pylist()
        for cell in table.rows.values()
        for seed in (1, 2)
    }
    could = {f"sentence {i}" for i in range(100) if i % 10 != 9}
    assert found[chosen.pairs, 1] == found[chosen.pairs, 2] == [f"sentence {i}" for i in range(20)]
    assert set(found[everything.pairs, 1]) == could and len(found[everything.pairs, 1]) == 90
    for seed in (1, 2):
        drawn = found[random.pairs, seed]
        assert len(set(drawn)) == 20 and set(drawn) < could
    assert found[random.pairs, 1] != found[random.pairs, 2]
