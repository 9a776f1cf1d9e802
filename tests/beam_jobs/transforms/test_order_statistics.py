from collections.abc import Iterable
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from beam_jobs.bucket import decile_ranks
from beam_jobs.transforms import order_statistics
from beam_jobs.transforms.order_statistics import (
    LEVELS,
    Column,
    Ranks,
    Targets,
    count,
    merge,
    narrow,
    position,
    sortable,
)
from models.hashing import text_hashes

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
ties = st.sampled_from([-0.0, 0.0, 1.0, -1.0, np.float32(1e-45), 0.5])
scores = st.lists(st.one_of(finite, ties), max_size=60) | st.lists(ties, max_size=200)


def select(shards: list[dict[str, Column]], ranks: Ranks, seed: int = 0) -> Targets:
    """The four scans, without a runner."""
    targets: Targets | None = None
    for _ in range(LEVELS):
        targets = narrow(merge(count(shard, targets, seed) for shard in shards), targets, ranks)
    assert targets is not None
    return targets


def cut(array: NDArray[Any], cuts: Iterable[int]) -> list[NDArray[Any]]:
    return np.split(array, sorted(cuts))


def places(
    score: NDArray[np.float32],
    ids: NDArray[np.object_],
    cuts: Iterable[int],
    ranks: Ranks,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Where every row stands among the ranks, the corpus cut into shards."""
    columns = [
        Column(sortable(s), pa.array(i, pa.string()))
        for s, i in zip(cut(score, cuts), cut(ids, cuts), strict=True)
    ]
    bounds = select([{"s": column} for column in columns], ranks, seed).get("s", [])
    return np.concatenate([position(column, bounds, seed) for column in columns])


def expected(
    score: NDArray[np.float32], hashes: NDArray[np.uint64], ranks: Ranks
) -> NDArray[np.int64]:
    """The definition: sort everything."""
    rank = np.empty(len(score), int)
    rank[np.lexsort((hashes, score + np.float32(0)))] = np.arange(len(score))
    return np.array([sum(r <= mine for r in ranks(len(score))) for mine in rank], int)


@given(scores, st.lists(st.integers(0, 60), max_size=4), st.integers(0, 2**32 - 1))
def test_deciles_are_those_of_a_full_sort_whatever_the_shards(
    values: list[float], cuts: list[int], seed: int
) -> None:
    score = np.array(values, np.float32)
    ids = np.array([f"row-{i}" for i in range(len(values))], object)
    cuts = [min(c, len(values)) for c in cuts]
    found = places(score, ids, cuts, decile_ranks, seed)
    hashes = text_hashes(pa.array(ids, pa.string()), seed)
    assert found.tolist() == expected(score, hashes, decile_ranks).tolist()
    sizes = np.bincount(found, minlength=10)
    assert len(sizes) == 10
    assert sizes.max() - sizes.min() <= 1


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), min_size=1, unique=True),
    st.lists(st.integers(0, 30), max_size=3),
    st.data(),
)
def test_hashes_with_the_same_leading_bits_are_told_apart(
    hashes: list[int], cuts: list[int], data: st.DataObject
) -> None:
    ranks = data.draw(st.lists(st.integers(0, len(hashes) - 1), min_size=1))
    ids = np.array([str(h) for h in hashes], object)

    def read(ids: pa.StringArray, seed: int = 0) -> NDArray[np.uint64]:
        return np.array([int(i) for i in ids.to_pylist()], np.uint64)

    score = np.zeros(len(hashes), np.float32)
    with mock.patch.object(order_statistics, "text_hashes", read):
        found = places(score, ids, [min(c, len(hashes)) for c in cuts], lambda n: ranks)
    assert found.tolist() == expected(score, np.array(hashes, np.uint64), lambda n: ranks).tolist()


@given(st.lists(finite | ties, min_size=2))
def test_sortable_keeps_the_order(values: list[float]) -> None:
    score = np.array(values, np.float32)
    assert (
        np.sign(score[:, None] - score[None, :].astype(np.float64))
        == np.sign(
            sortable(score)[:, None].astype(np.int64) - sortable(score)[None, :].astype(np.int64)
        )
    ).all()


def test_minus_zero_is_zero() -> None:
    assert np.ptp(sortable(np.array([-0.0, 0.0], np.float32))) == 0


def test_infinities_are_at_the_ends() -> None:
    score = np.array([np.inf, 3e38, -np.inf, -3e38], np.float32)
    assert np.argsort(sortable(score)).tolist() == [2, 3, 1, 0]


@pytest.mark.parametrize("rows", [0, 1, 2, 9, 10, 11, 19, 1000])
def test_all_scores_equal(rows: int) -> None:
    ids = np.array([str(i) for i in range(rows)], object)
    found = places(np.ones(rows, np.float32), ids, [rows // 3], decile_ranks)
    sizes = np.bincount(found, minlength=10)
    assert sizes.sum() == rows
    assert sizes.max() - sizes.min() <= 1


def test_nothing_at_all() -> None:
    assert select([], decile_ranks) == {}


def test_ranks_beyond_the_corpus_are_left_out() -> None:
    column = Column(np.zeros(3, np.uint32), pa.array(["a", "b", "c"]))
    assert select([{"draw": column}], lambda n: [3])["draw"] == []


def test_two_scores_are_independent() -> None:
    ids = pa.array([str(i) for i in range(100)])
    up, down = np.arange(100, dtype=np.float32), -np.arange(100, dtype=np.float32)
    columns = {"up": Column(sortable(up), ids), "down": Column(sortable(down), ids)}
    bounds = select([columns], decile_ranks)
    assert (position(columns["up"], bounds["up"]) == np.arange(100) // 10).all()
    assert (position(columns["down"], bounds["down"]) == 9 - np.arange(100) // 10).all()


def test_the_seed_changes_how_ties_break_and_nothing_else() -> None:
    score = np.repeat(np.arange(5, dtype=np.float32), 40)
    ids = np.array([str(i) for i in range(200)], object)
    one, two = (places(score, ids, [70], decile_ranks, seed) for seed in (1, 2))
    assert (one != two).any()
    assert (one // 2 == two // 2).all()  # two deciles a score
