"""Selection among several translations of a source."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs import bucket, select
from paraloom.beam_jobs.analysis.diff import diff_shards
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard, units, write_shard
from paraloom.beam_jobs.select import Criteria, PerSource, decide
from tests.shards import ONE, cut, filled, rows_of, shards_of

SCORE = ("translation_score",)
ALL = Criteria(by=SCORE[0], deciles=None, max_tokens=None, size=None, seed=1)
WORDS = ["dog", "cat", "runs", "sits", "fast", "here"]


def scored(folder: Path, sources: int, candidates: int, shard_rows: int, seed: int) -> list[Shard]:
    """Pairs as `score` leaves them, with several translations of each source."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "id": f"id-{source}",
            "reference": f"reference {source}",
            "translation": " ".join(random.choice(WORDS, 4)),
            "translation_score": np.float32(-candidate // 2),  # ties
            "candidate": candidate,
        }
        for source in range(sources)
        for candidate in range(candidates)
    ]
    table = filled(rows, schema.scored(SCORE, candidates=True))
    return cut(folder, table, shard_rows * candidates)


def bucketed(shards: list[Shard], folder: Path) -> list[Shard]:
    return shards_of(bucket.run(units(shards, "b"), str(folder), SCORE, ONE))


def test_shards_make_no_difference_and_rows_are_conserved(tmp_path: Path) -> None:
    criteria = replace(
        ALL, deciles=tuple(range(2, 10)), per_source="diverse", max_overlap=0.4, size=9
    )
    found = []
    for number in (4, 100):
        made = scored(tmp_path / f"in-{number}", 23, 4, number, seed=1)
        shards = bucketed(made, tmp_path / f"bucket-{number}")
        result = select.run(units(shards, "s"), str(tmp_path / f"out-{number}"), criteria, ONE)
        found.append(result)
        lost = rows_of(result, rejected=True)
        left = {(row["id"], row["candidate"]) for row in [*rows_of(result), *lost]}
        assert left == {(f"id-{i}", k) for i in range(23) for k in range(4)}
        outside = f"outside the selected deciles of {SCORE[0]}"
        assert {row["reason"] for row in lost} >= {"not drawn", outside}
    assert rows_of(found[0]) == rows_of(found[1])
    assert len(rows_of(found[0])) == 9
    assert not diff_shards(*map(shards_of, found))


LINES = ["l'homme", "homme", "Homme.", "l'homme court vite", "homme", "un chat", "L'homme", "chat"]


def by_source(kind: PerSource, max_overlap: float, language: str) -> list[str]:
    """Why `decide` rejects the candidates of two sources; the texts of some are the reference's."""
    table = pa.table(
        {
            "id": ["a"] * 4 + ["b"] * 4,
            "candidate": [*range(4), *range(4)],
            "reference": ["homme"] * 4 + ["un chat"] * 4,
            "translation": LINES,
            "reference_tokens": [1] * 8,
            "translation_tokens": [2] * 8,
        }
    )
    criteria = replace(ALL, per_source=kind, max_overlap=max_overlap, language=language)
    reasons, hashes = decide(table, criteria)
    accepted = table.filter(pa.array(reasons == ""))
    assert np.array_equal(hashes, decide(accepted, ALL)[1])
    return list(reasons)


def test_one_source_at_a_time_after_the_other_conditions() -> None:
    same, best = "both sides are the same", "not the best translation of its source"
    similar = "too similar to another translation of its source"
    copies = ["", same, same, "", "", same, "", ""]
    assert by_source("all", 0.0, "fr") == copies
    assert by_source("best", 0.0, "fr") == ["", same, same, best, "", same, best, best]
    assert by_source("diverse", 1.0, "fr") == copies
    # In French l' is a word of its own: homme is in both, and l'homme in the longer one.
    assert by_source("diverse", 0.5, "fr") == ["", same, same, similar, "", same, similar, ""]
    assert by_source("diverse", 0.5, "en") == ["", same, same, similar, "", same, "", ""]


def test_runs_are_compared_by_candidate(tmp_path: Path) -> None:
    (shard,) = scored(tmp_path / "a", 3, 3, 100, 1)
    table = pq.read_table(shard.path)
    without = write_shard(
        f"{tmp_path}/b/part.parquet", table.filter(pa.array([True, False] + [True] * 7))
    )
    (row,) = diff_shards([shard], [without]).values()
    assert row.rows == 1


def test_a_pair_repeats_only_pairs_that_are_in_the_corpus(tmp_path: Path) -> None:
    (shard,) = scored(tmp_path / "in", 2, 2, 100, 1)
    table = pq.read_table(shard.path)
    texts = ["a dog runs", "a dog sits", "a dog sits", "one dog sits"]
    for name, column in (("reference", ["a dog"] * 4), ("translation", texts)):
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    shards = [write_shard(f"{tmp_path}/new/part.parquet", table)]
    criteria = replace(ALL, per_source="best")
    result = select.run(units(shards, "s"), str(tmp_path / "out"), criteria, ONE)
    assert [row["translation"] for row in rows_of(result)] == ["a dog runs", "a dog sits"]
