import random
import tracemalloc
from collections.abc import Iterable

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.runners.launch import beam_options
from paraloom.beam_jobs.transforms import merging
from paraloom.beam_jobs.transforms.merging import Merge, MergeGlobally
from paraloom.beam_jobs.transforms.order_statistics import (
    CAPACITY,
    Sketch,
    _keys_held,
    merge_samples,
)


def test_a_thousand_sketches_are_merged_in_little_memory() -> None:
    """They hold 262 MB together; given to one call of `merge_samples`, they took 918 MB."""
    some = np.random.default_rng(1).integers(0, 2**62, CAPACITY, np.uint64)
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


values = st.lists(st.lists(st.integers(), max_size=4), max_size=12)


@given(st.lists(values, max_size=5), st.randoms())
def test_no_value_is_lost_or_doubled_in_any_order(
    workers: list[list[list[int]]], order: random.Random
) -> None:
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
def test_workers_merge_in_groups_and_the_result_may_be_a_side_input(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_GROUPS", 3)
    numbers = [[number] for number in range(many)]
    with beam.Pipeline(runner="FnApiRunner", options=beam_options([])) as pipeline:
        given = pipeline | beam.Create(numbers)
        merged = given | MergeGlobally(Merge(ordered, len))
        counted = given | beam.Map(
            lambda value, side: (value, len(side)), beam.pvalue.AsSingleton(merged)
        )
        assert_that(merged, equal_to([list(range(many))]))
        assert_that(counted, equal_to([(value, many) for value in numbers]), label="side input")
