from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs import bucket
from paraloom.beam_jobs.bucket import summarise
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine import shards as shard_files
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import Shard, read_shard, units
from paraloom.beam_jobs.transforms.shares import Deciles
from tests.run_helpers import Patch
from tests.shards import ONE, cut, deciles_by_a_sort, filled, rows_of, shards_of

SCORE = ("translation_score",)


def scored(folder: Path, score: np.ndarray, shard_rows: int) -> list[Shard]:
    """Pairs with these scores as the stage `score` leaves them, cut into shards."""
    rows = [{"translation_score": value} for value in score.tolist()]
    return cut(folder / f"score-{shard_rows}", filled(rows, schema.scored(SCORE)), shard_rows)


def run(shards: list[Shard], out: Path) -> Result:
    return bucket.run(units(shards, "key"), str(out), SCORE, ONE)


def rows(result: Result) -> dict[str, int]:
    return {row["id"]: row["translation_score_decile"] for row in rows_of(result)}


@pytest.mark.parametrize("n", [0, 3, 137])
def test_deciles_are_exact_and_the_same_for_any_shards(tmp_path: Path, n: int) -> None:
    score = np.random.default_rng(5).choice([-3.5, -1, -0.0, 0.0, 0.25], n).astype(np.float32)
    one = run(scored(tmp_path, score, 1000), tmp_path / "one")
    assert rows(one) == rows(run(scored(tmp_path, score, 10), tmp_path / "many"))
    ids = [f"id-{i}" for i in range(n)]
    assert [rows(one)[id] for id in ids] == deciles_by_a_sort(ids, score)


def test_each_score_has_its_own_deciles_and_candidates_are_own_rows(
    tmp_path: Path,
) -> None:
    random = np.random.default_rng(2)
    names = ("translation_score", "trigram_overlap")
    rows = [
        {
            "id": f"id-{i // 3}",
            "candidate": i % 3,
            "translation_score": random.choice([-2.0, -1.0, -0.5]),
            "trigram_overlap": random.choice([0.0, 1.0]),
        }
        for i in range(57)
    ]
    table = filled(rows, schema.scored(names, candidates=True))
    shards = cut(tmp_path / "score", table, 30)
    result = bucket.run(units(shards, "key"), str(tmp_path / "out"), names, ONE)
    found = pa.concat_tables(map(read_shard, shards_of(result)))
    assert found.select(table.column_names).equals(table)
    ids = schema.row_ids(table).to_pylist()
    for name in names:
        deciles = deciles_by_a_sort(ids, table[name].to_numpy())
        assert found[schema.decile(name)].to_pylist() == deciles


def test_the_summary_is_that_of_all_rows(tmp_path: Path) -> None:
    score = np.random.default_rng(1).normal(size=95).astype(np.float32)
    score[:20] = 0
    result = run(scored(tmp_path, score, 20), tmp_path / "out")
    summary = summarise(result.receipts)["translation_score"]
    score.sort()
    parts = np.split(score, [k * 95 // 10 for k in range(1, 10)])
    assert summary.rows == [len(part) for part in parts]
    assert summary.lowest == [float(part[0]) for part in parts]
    assert summary.highest == [float(part[-1]) for part in parts]


def test_an_inexact_decile_ends_the_run(tmp_path: Path, monkeypatch: Patch) -> None:
    one = Deciles(rows=[3, 1], lowest=[], highest=[])
    monkeypatch.setattr(bucket, "summarise", lambda receipts: {"s": one})
    with pytest.raises(RuntimeError, match="deciles of s are not exact"):
        run(scored(tmp_path, np.ones(3, np.float32), 3), tmp_path / "out")


def test_the_scores_are_read_twice_and_the_pairs_once(tmp_path: Path, monkeypatch: Patch) -> None:
    read: list[str] = []

    def counted(shard: Shard) -> bytes:
        read.append(shard.name)
        return Path(shard.path).read_bytes()

    for module in (shard_files, bucket):
        monkeypatch.setattr(module, "read_whole", counted)
    shards = scored(tmp_path, np.arange(30, dtype=np.float32), 10)
    run(shards, tmp_path / "out")
    assert Counter(read) == {shard.name: 3 for shard in shards}
