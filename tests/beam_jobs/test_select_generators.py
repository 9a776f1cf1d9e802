"""Selection among the candidates of several generators."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs import select
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard, read_shard, units
from paraloom.beam_jobs.select import Criteria
from tests.shards import ONE, cut, filled, shards_of

PAIRS = 60


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Shard]:
    """Each pair has a candidate of nmt, two of a; every third has one of b, the best."""
    rng = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for i in range(PAIRS):
        makers = ["nmt", "a", "a", *(["b"] if i % 3 == 0 else [])]
        for number, name in enumerate(makers):
            score = -0.01 if name == "b" else -float(rng.uniform(0.1, 2))
            words = {"reference": f"dog {i}", "translation": f"{name} says {i} {number} things"}
            of = {"id": f"pair-{i}", "candidate": number, "generator": name}
            rows.append({**of, **words, "translation_score": score})
    form = schema.bucketed(("translation_score",), generators=True)
    return cut(tmp_path_factory.mktemp("bucket"), filled(rows, form), 100)


def run(shards: list[Shard], folder: Path, **options: Any) -> pa.Table:
    values = {"deciles": None, "max_tokens": None, "size": None, "seed": 1, **options}
    criteria = Criteria(by="translation_score", generators=True, rank="translation_score", **values)
    result = select.run(units(shards, "key"), str(folder), criteria, ONE)
    found = pa.concat_tables(map(read_shard, shards_of(result)))
    assert select.preview(shards, criteria).counts["selected"] == len(found)
    return found


def test_the_best_candidate_may_be_of_any_generator(shards: list[Shard], tmp_path: Path) -> None:
    found = run(shards, tmp_path, per_source="best").to_pylist()
    rows = [row for shard in shards for row in read_shard(shard).to_pylist()]
    best: dict[str, Any] = {}
    for row in rows:
        if row["id"] not in best or row["translation_score"] > best[row["id"]]["translation_score"]:
            best[row["id"]] = row
    assert found == [best[f"pair-{i}"] for i in range(PAIRS)]
    assert Counter(row["generator"] for row in found)["b"] == PAIRS // 3


@pytest.mark.parametrize(
    ("share", "size", "expected"),
    [
        (0.4, None, {"nmt": 40, "a": 40, "b": 20}),
        (0.5, None, {"nmt": 60, "a": 80, "b": 20}),
        (0.5, 40, {"nmt": 15, "a": 20, "b": 5}),
        (0.9, None, {"nmt": 60, "a": 120, "b": 20}),
    ],
)
def test_shares_are_exact(
    shards: list[Shard], tmp_path: Path, share: float, size: int | None, expected: dict[str, int]
) -> None:
    found = run(shards, tmp_path, per_generator=share, size=size)
    counts = Counter(found["generator"].to_pylist())
    assert max(counts.values()) <= share * counts.total()
    assert counts == expected


def test_who_stays_depends_on_the_seed_alone(shards: list[Shard], tmp_path: Path) -> None:
    first, again, other = (
        run(shards, tmp_path / f"{i}", per_generator=0.4, seed=seed)
        for i, seed in enumerate((1, 1, 2))
    )
    assert first.equals(again)
    assert not first.equals(other)
    assert Counter(first["generator"].to_pylist()) == Counter(other["generator"].to_pylist())
