"""Duplicate rows of a distributed corpus: hashed, partitioned by hash, and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

_ROWS_PER_PARTITION = 2_000_000

Hashes = tuple[np.ndarray, np.ndarray]
"""Hashes, uint64 [n, 2], and the rows of a unit that they belong to, int64 [n]."""


def row_hash(*columns: pa.Array) -> np.ndarray:
    """A 128-bit hash of each row's texts (XXH3), uint64 [n, 2].

    The columns are joined by a control character, which no valid text contains.
    """
    joined = columns[0]
    if len(columns) > 1:
        joined = pc.binary_join_element_wise(*columns, "\x1f")
    digest = xxhash.xxh3_128_digest
    data = b"".join([digest(text) for text in joined.cast(pa.binary()).to_pylist()])
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def repeated(hashes: np.ndarray, units: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which rows [n] (bool) have the hash of an earlier one, by (unit, row)."""
    order = np.lexsort((rows, units, hashes[:, 1], hashes[:, 0]))
    sorted_hashes = hashes[order]
    same = np.zeros(len(order), bool)
    same[1:] = (sorted_hashes[1:] == sorted_hashes[:-1]).all(axis=1)
    result = np.zeros(len(order), bool)
    result[order] = same
    return result


class FindDuplicates(beam.PTransform):
    """(unit index, `Hashes`) in; (unit index, duplicate rows) out.

    The first of equal rows, by unit and row, is not a duplicate. A unit has no output if it has no
    duplicates, and several if they are in several of the partitions, which `rows` determines.
    """

    def __init__(self, rows: int):
        super().__init__()
        self.partitions = 1 + rows // _ROWS_PER_PARTITION

    def expand(self, hashed: beam.PCollection) -> beam.PCollection:
        """Group equal hashes, partition by partition."""
        partitions = self.partitions

        def split(element: tuple[int, Hashes]) -> Iterator[tuple[int, Any]]:
            unit, (hashes, rows) = element
            part = hashes[:, 0] % np.uint64(partitions)
            for partition in np.unique(part):
                here = part == partition
                yield int(partition), (unit, hashes[here], rows[here])

        def find(
            element: tuple[int, Iterable[tuple[int, np.ndarray, np.ndarray]]],
        ) -> Iterator[tuple[int, np.ndarray]]:
            groups = list(element[1])
            hashes = np.concatenate([group[1] for group in groups])
            rows = np.concatenate([group[2] for group in groups])
            units = np.repeat([group[0] for group in groups], [len(group[2]) for group in groups])
            again = repeated(hashes, units, rows)
            for unit in np.unique(units[again]):
                yield int(unit), np.sort(rows[again & (units == unit)])

        return (
            hashed
            | "By hash" >> beam.FlatMap(split).with_output_types(tuple[int, Any])
            | "Together" >> beam.GroupByKey()
            | "Duplicates" >> beam.FlatMap(find).with_output_types(tuple[int, Any])
        )


class WithDuplicates(beam.PTransform):
    """Units in; (unit, its duplicate rows: sorted, int64) out.

    Args:
        hashes: reads a unit's hashes, in blocks of any size.
        rows: approximate number of rows of all units.
    """

    def __init__(self, hashes: Callable[[Any], Iterable[Hashes]], rows: int):
        super().__init__()
        self.hashes, self.rows = hashes, rows

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find the duplicates, then join them with their units."""
        read = self.hashes

        def hashed(unit: Any) -> Iterator[tuple[int, Hashes]]:
            for block in read(unit):
                yield unit.index, block

        def join(element: tuple[int, dict[str, Iterable[Any]]]) -> tuple[Any, np.ndarray]:
            (unit,) = element[1]["unit"]
            found = [np.empty(0, np.int64), *element[1]["duplicates"]]
            return unit, np.sort(np.concatenate(found))

        duplicates = (
            units
            | "Hash" >> beam.FlatMap(hashed).with_output_types(tuple[int, Any])
            | "Find" >> FindDuplicates(self.rows)
        )
        by_index = units | "By index" >> beam.Map(lambda u: (u.index, u)).with_output_types(
            tuple[int, Any]
        )
        return (
            {"unit": by_index, "duplicates": duplicates}
            | "Group" >> beam.CoGroupByKey()
            | "Join" >> beam.Map(join)
        )
