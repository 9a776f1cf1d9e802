import itertools
import tracemalloc
from collections.abc import Callable, Iterable
from random import Random
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.pipeline import PipelineVisitor
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraloom.beam_jobs.bucket import starts_of_deciles
from paraloom.beam_jobs.engine.launch import beam_options
from paraloom.beam_jobs.transforms import merging, order_statistics
from paraloom.beam_jobs.transforms.merging import Merge, MergeGlobally
from paraloom.beam_jobs.transforms.order_statistics import (
    Column,
    Columns,
    Sketch,
    Targets,
    _keys_held,
    choose,
    collect,
    merge_samples,
    merge_windowed,
    position,
    sample,
    sortable,
)
from paraloom.beam_jobs.transforms.shares import decile_ranks
from paraloom.models.hashing import text_hashes
from tests.run_helpers import Patch

Ranks = Callable[[int], list[int]]
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
ties = st.sampled_from([-0.0, 0.0, 1.0, -1.0, np.float32(1e-45), 0.5])


def select(shards: list[Columns], ranks: Ranks, seed: int = 0, fan: int = 2) -> Targets:
    """The two scans, without a runner; sketches are merged `fan` at a time, like Beam does it."""
    sketches = [sample(shard, seed) for shard in shards]
    while len(sketches) > 1:
        sketches = [merge_samples(sketches[i : i + fan]) for i in range(0, len(sketches), fan)]
    windows = {name: s.windows(ranks(s.rows)) for name, s in merge_samples(sketches).items()}
    candidates = merge_windowed(collect(shard, windows, seed) for shard in shards)
    return choose(candidates, windows)


def check(
    score: NDArray[np.float32], ids: pa.Array, cuts: Iterable[int], ranks: Ranks,
    seed: int = 0, fan: int = 2,
) -> None:  # fmt: skip
    """Where every row stands among the ranks is as in a sort of all rows, however they are cut."""
    rows = len(score)
    ends = [0, *sorted(min(place, rows) for place in cuts), rows]
    parts = itertools.pairwise(ends)
    shards: list[Columns] = [{"s": Column(sortable(score[a:b]), ids[a:b])} for a, b in parts]
    bounds = select(shards, ranks, seed, fan)["s"]
    found = np.concatenate([position(shard["s"], bounds, seed) for shard in shards])
    order = np.lexsort((text_hashes(ids, seed), sortable(score)))
    expected = np.searchsorted(sorted(ranks(rows)), np.arange(rows), side="right")
    assert found[order].tolist() == expected.tolist()


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), min_size=1, unique=True),
    st.lists(st.integers(0, 30), max_size=3),
    st.data(),
)
def test_hashes_with_the_same_leading_bits_are_told_apart(
    hashes: list[int], cuts: list[int], data: st.DataObject
) -> None:
    ranks = data.draw(st.lists(st.integers(0, len(hashes) - 1), min_size=1))

    def read(ids: pa.StringArray, seed: int = 0) -> NDArray[np.uint64]:
        return np.array([int(i) for i in ids.to_pylist()], np.uint64)

    score, ids = np.zeros(len(hashes), np.float32), pa.array([str(h) for h in hashes])
    with (
        mock.patch.object(order_statistics, "text_hashes", read),
        mock.patch(f"{__name__}.text_hashes", read),
    ):
        check(score, ids, cuts, lambda n: ranks)


@given(st.lists(st.floats(width=32, allow_nan=False) | ties, min_size=2))
def test_sortable_keeps_the_order(values: list[float]) -> None:
    score = np.array(values, np.float32)
    keys = sortable(score)
    assert ((score[:, None] < score) == (keys[:, None] < keys)).all()


def test_ranks_beyond_the_corpus_are_left_out() -> None:
    column = Column(np.zeros(3, np.uint32), pa.array(["a", "b", "c"]))
    assert select([{"draw": column}], lambda n: [3])["draw"] == []
    assert select([], decile_ranks) == {}


@pytest.fixture
def small(monkeypatch: Patch) -> None:
    """Sketches so small that they have to leave out keys."""
    monkeypatch.setattr(order_statistics, "CAPACITY", 8)


heavy = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, np.nan, np.inf])
distributions: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "all equal": lambda rows, random: np.zeros(rows),
    "two values": lambda rows, random: random.random(rows) < 0.93,
    "ascending": lambda rows, random: np.arange(rows),
    "descending": lambda rows, random: -np.arange(rows),
    "half of them tied": lambda rows, random: np.maximum(random.normal(size=rows), 0),
    "neighbouring floats": lambda rows, random: 1 + random.integers(0, 99, rows) * 2.0**-23,
    "not a number": lambda rows, random: random.choice([np.nan, 1.0, -np.inf, np.inf], rows),
    "shards that do not overlap": lambda rows, random: np.arange(rows) // 100,
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", distributions)
@pytest.mark.parametrize("fan", [2, 11])
def test_a_sketch_that_left_out_keys_still_bounds_the_rank(name: str, fan: int) -> None:
    random = np.random.default_rng(3)
    score = np.asarray(distributions[name](4000, random), np.float32)
    ids = pa.array([f"row-{i}" for i in random.permutation(4000)])
    check(score, ids, random.integers(0, 4000, 39).tolist(), decile_ranks, fan=fan)


@pytest.mark.usefixtures("small")
@given(
    st.lists(heavy | finite | ties, max_size=300),
    st.lists(st.integers(0, 300), max_size=12),
    st.integers(2, 5),
    st.integers(0, 2**32 - 1),
)
def test_ranks_are_those_of_a_full_sort_whatever_the_shards(
    values: list[float], cuts: list[int], fan: int, seed: int
) -> None:
    score = np.array(values, np.float32)
    ids = pa.array([f"row-{i}" for i in range(len(values))], pa.string())
    check(score, ids, cuts, decile_ranks, seed, fan)
    check(score, ids, cuts, lambda n: list(range(0, n, 7)), seed, fan)


def test_the_memory_of_a_sketch_and_the_candidates_are_bounded() -> None:
    random = np.random.default_rng(1)
    capacity = order_statistics.CAPACITY
    merged, rows, keys = Sketch(), 100 * capacity, []
    for _ in range(100):
        keys.append(random.integers(0, 2**63, capacity, np.uint64))
        merged = merge_samples([{"s": merged}, {"s": Sketch([keys[-1]])}])["s"]
    levels = int(np.log2(100)) + 1
    assert sum(map(len, merged.levels)) <= (levels + 1) * capacity
    assert merged.over + merged.under <= levels * 100
    windows, ordered = merged.windows(decile_ranks(rows)), np.sort(np.concatenate(keys))
    first = np.searchsorted(ordered, windows.first, side="left")
    last = np.searchsorted(ordered, windows.last, side="right")
    assert (first <= windows.ranks).all()
    assert (windows.ranks < last).all()
    assert (last - first).max() < rows / capacity * 2 * levels


def test_no_worker_is_given_all_sketches_or_candidates_at_once() -> None:
    """Beam calls a plain function with what all workers have made."""
    fns = []

    class Look(PipelineVisitor):
        def enter_composite_transform(self, node: Any) -> None:
            if isinstance(node.transform, beam.CombinePerKey):
                fns.append(node.transform.fn)

    pipeline = beam.Pipeline(options=beam_options([]))
    transform = order_statistics.OrderStatistics(lambda unit: {}, starts_of_deciles)
    _ = pipeline | beam.Create([1]) | transform
    pipeline.visit(Look())
    assert [type(fn) for fn in fns] == [Merge] * 4  # in groups, then all


def test_a_thousand_sketches_are_merged_in_little_memory() -> None:
    """They hold 262 MB together; given to one call of `merge_samples`, they took 918 MB."""
    some = np.random.default_rng(1).integers(0, 2**62, order_statistics.CAPACITY, np.uint64)
    sketches = ([{"score": Sketch([some + np.uint64(i)])}] for i in range(1000))
    combiner = Merge(merge_samples, _keys_held)
    tracemalloc.start()
    try:
        combiner.extract_output(combiner.merge_accumulators(sketches))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30e6


def ordered(many: Iterable[list[int]]) -> list[int]:
    return sorted(value for values in many for value in values)


@given(
    st.lists(st.lists(st.lists(st.integers(), max_size=4), max_size=12), max_size=5), st.randoms()
)
def test_no_order_loses_or_doubles_a_value(workers: list[list[list[int]]], order: Random) -> None:
    combiner = Merge(ordered, len)
    accumulators = []
    for worker in workers:
        accumulator = combiner.create_accumulator()
        for value in worker:
            accumulator = combiner.add_input(accumulator, value)
        sent = combiner.compact(accumulator) if order.random() < 0.5 else accumulator
        accumulators.append(sent)
    order.shuffle(accumulators)
    merged = combiner.extract_output(combiner.merge_accumulators(iter(accumulators)))
    assert merged == ordered(value for worker in workers for value in worker)


@pytest.mark.parametrize("many", [0, 1, 50])
def test_workers_merge_in_groups_and_give_a_side_input(many: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr(merging, "_GROUPS", 3)
    numbers = [[number] for number in range(many)]
    with beam.Pipeline(runner="FnApiRunner", options=beam_options([])) as pipeline:
        given = pipeline | beam.Create(numbers)
        merged = given | MergeGlobally(Merge(ordered, len))
        side = beam.pvalue.AsSingleton(merged)
        counted = given | beam.Map(lambda value, side: (value, len(side)), side)
        assert_that(merged, equal_to([list(range(many))]))
        assert_that(counted, equal_to([(value, many) for value in numbers]), label="side input")
