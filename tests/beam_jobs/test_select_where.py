"""`select.where` through the Beam job, against the same selection written out row by row."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard, commit, read_shard, units
from paraloom.beam_jobs.select import Criteria, judge, run, tsv_path
from paraloom.beam_jobs.transforms.predicates import Predicate

SCORERS = ("trigram_overlap", "unigram_f1")
WHERE = ("trigram_overlap <= 0.5", "unigram_f1_decile in 2..7", "reference_tokens >= 6")
ROWS = 400


def pairs() -> pa.Table:
    rng = np.random.default_rng(3)
    scores = {name: rng.random(ROWS).astype(np.float32) for name in SCORERS}
    tokens = rng.integers(2, 14, (2, ROWS)).astype(np.int16)
    columns = {
        "id": [f"id-{i}" for i in range(ROWS)],
        "source": ["zdroj"] * ROWS,
        "reference": [f"reference {i}" for i in range(ROWS)],
        "translation": [f"translation {i}" for i in range(ROWS)],
        "translation_score": np.zeros(ROWS, np.float32),
        "translation_subwords": np.ones(ROWS, np.int16),
        "reference_tokens": tokens[0],
        "translation_tokens": tokens[1],
        **scores,
        **{
            schema.decile(name): (10 * np.argsort(np.argsort(values)) // ROWS).astype(np.int8)
            for name, values in scores.items()
        },
    }
    return pa.table(columns, schema=schema.bucketed(SCORERS))


def criteria(**changes: Any) -> Criteria:
    options: dict[str, Any] = {
        "by": "unigram_f1",
        "deciles": None,
        "max_tokens": None,
        "size": None,
        "seed": 1,
    }
    where = tuple(map(Predicate.parse, WHERE))
    return Criteria(**{**options, "where": where, **changes})


def plainly(row: dict[str, Any]) -> str:
    """Which condition a pair fails first, or none."""
    if not row["trigram_overlap"] <= 0.5:
        return "not trigram_overlap <= 0.5"
    if not 2 <= row["unigram_f1_decile"] <= 7:
        return "not unigram_f1_decile in 2..7"
    if not row["reference_tokens"] >= 6:
        return "not reference_tokens >= 6"
    return ""


def test_each_condition_is_its_own_reason() -> None:
    table = pairs()
    reasons, _ = judge(table, criteria())
    expected = [plainly(row) for row in table.to_pylist()]
    assert reasons.tolist() == expected
    assert len(set(expected)) == 4


def test_a_row_is_out_for_the_first_thing_wrong_with_it() -> None:
    table = pairs()
    reasons, _ = judge(table, criteria(deciles=(2, 3), max_tokens=8))
    for reason, row in zip(reasons, table.to_pylist(), strict=True):
        if row["unigram_f1_decile"] not in (2, 3):
            assert reason == "outside the selected deciles of unigram_f1"
        elif max(row["reference_tokens"], row["translation_tokens"]) > 8:
            assert reason == "more tokens than max_tokens"
        else:
            assert reason == plainly(row)


@pytest.mark.parametrize(("workers", "size"), [("1", None), ("2", None), ("1", 20)])
def test_the_job_keeps_what_meets_all_conditions(
    tmp_path: Path, workers: str, size: int | None
) -> None:
    table = pairs()
    nothing = schema.rejected(schema.INGEST).empty_table()
    shards: list[Shard] = []
    for first in range(0, ROWS, 100):
        name, part = f"part-{first:03d}", table.slice(first, 100)
        made = commit(str(tmp_path / "in"), name, name, 100, [(name, part, nothing)], started=0)
        shards += made.shards
    arguments = ["--direct_num_workers", workers]
    place = str(tmp_path / "out")
    result = run(units(shards, "key"), place, criteria(size=size), arguments)

    reasons = {row["id"]: plainly(row) for row in table.to_pylist()}
    meets = {id for id, reason in reasons.items() if not reason}
    kept = [id for r in result.receipts for s in r.shards for id in read_shard(s)["id"].to_pylist()]
    with gzip.open(tsv_path(place), "rt") as stream:
        exported = [np.float32(line.split("\t")[2]) for line in stream]
    score = dict(zip(*(table[name].to_pylist() for name in ("id", "unigram_f1")), strict=True))
    assert exported == [score[id] for id in kept]
    rejected: Counter[str] = Counter()
    for receipt in result.receipts:
        rejected.update(receipt.rejected)
    expected = Counter(reason for reason in reasons.values() if reason)
    if size is None:
        assert set(kept) == meets
    else:
        assert len(kept) == size < len(meets)
        assert set(kept) < meets
        expected["not drawn"] = len(meets) - size
    assert rejected == expected
