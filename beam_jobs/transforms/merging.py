"""Merge the values of all workers in bounded memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import chain
from typing import Any

import apache_beam as beam

_GROUPS = 64  # maximum number of values in the last merge; Flink sends them in one message


def by_key(many: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Group values by key, in order.

    >>> by_key([{"a": 1}, {"b": 2, "a": 3}])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[str, list[Any]] = {}
    for each in many:
        for key, value in each.items():
            found.setdefault(key, []).append(value)
    return found


class Merge(beam.CombineFn):
    """Merges values such as tables. To a plain function, Beam would pass many values at once.

    `merge` receives the values in any order. `rows` returns the number of rows of a value. Values
    are merged when the new values have at least as many rows as the merged value.
    """

    def __init__(self, merge: Callable[[Iterable[Any]], Any], rows: Callable[[Any], int]):
        super().__init__()
        self.merge, self.rows = merge, rows

    def create_accumulator(self) -> list[Any]:
        """Return an empty accumulator."""
        return []

    def add_input(self, values: list[Any], value: Any) -> list[Any]:
        """Add a value to the accumulator, whose first value is the merged value."""
        values = [*values, value]
        merged, *pending = map(self.rows, values)
        return [self.merge(values)] if sum(pending) >= merged else values

    def merge_accumulators(self, many: Iterable[list[Any]]) -> list[Any]:
        """Merge the accumulators of several workers."""
        return reduce(self.add_input, chain.from_iterable(many), [])

    def compact(self, values: list[Any]) -> list[Any]:
        """Merge all values before the accumulator is sent to another worker."""
        return [self.merge(values)]

    def extract_output(self, values: list[Any]) -> Any:
        """Return the merged value."""
        return self.merge(values)


class MergeGlobally(beam.PTransform):
    """Merges all values into one value. Several workers first merge groups of values.

    `CombineGlobally.with_fanout` would stall the local runner if the output is a side input.
    """

    def __init__(self, combiner: Merge):
        super().__init__()
        self.combiner = combiner

    def expand(self, values: beam.PCollection) -> beam.PCollection:
        """Merge in groups, and then merge the groups."""
        return (
            values
            | "Group" >> beam.ParDo(_Group()).with_output_types(tuple[int, Any])
            | "Merge groups" >> beam.CombinePerKey(self.combiner)
            | beam.Values()
            | "Merge all" >> beam.CombineGlobally(self.combiner)
        )


class _Group(beam.DoFn):
    # All values of a bundle are in one group, so that they are merged before they are sent.

    def start_bundle(self) -> None:
        self.group = random.randrange(_GROUPS)

    def process(self, value: Any) -> Iterator[tuple[int, Any]]:
        yield self.group, value
