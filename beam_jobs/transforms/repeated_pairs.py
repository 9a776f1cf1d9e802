"""Repeated pairs of a distributed corpus, each with the id of its first occurrence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.transforms.duplicates import (
    Hashes,
    by_partition,
    by_value,
    grouped,
    owners,
    partitions,
    together,
)

Element = tuple[Any, np.ndarray]
"""A unit and its duplicate rows, from `WithDuplicates`."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Rows of a unit that repeat an earlier one, ascending, and the ids of their first ones."""

    rows: np.ndarray  # int64 [n]
    first: pa.Array  # string [n]


class WithRepeats(beam.PTransform):
    """(unit, its duplicate rows) in; (unit, its duplicate rows, `Repeats`) out.

    Args:
        read: reads the hashes and the ids of a unit's rows that are no duplicates, in blocks.
        rows: approximate number of rows of all units.
    """

    def __init__(self, read: Callable[[Element], Iterable[tuple[Hashes, pa.Array]]], rows: int):
        super().__init__()
        self.read, self.partitions = read, partitions(rows)

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Group equal hashes, partition by partition, and join what is found with the units."""
        read, count = self.read, self.partitions

        def hashed(element: Element) -> Iterator[tuple[int, Any]]:
            index = element[0].index
            for (hashes, rows), ids in read(element):
                for partition, here in by_value(hashes, count):
                    yield partition, (index, hashes[here], rows[here], ids.take(pa.array(here)))

        def find(element: tuple[int, Iterable[Any]]) -> Iterator[tuple[int, Repeats]]:
            groups = list(element[1])
            hashes, units, rows = together(group[:3] for group in groups)
            ids = pa.concat_arrays([group[3] for group in groups])
            owner = owners(hashes, units, rows)
            again = np.flatnonzero(owner != np.arange(len(owner)))
            for unit, here in grouped(units[again], again):
                yield unit, Repeats(rows[here], ids.take(pa.array(owner[here])))

        def join(given: Element, found: list[Repeats]) -> tuple[Any, ...]:
            rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in found)])
            first = pa.concat_arrays([pa.array([], pa.string()), *(part.first for part in found)])
            order = np.argsort(rows)
            return *given, Repeats(rows[order], first.take(pa.array(order)))

        return by_partition(elements, hashed, find, join, lambda element: int(element[0].index))
