"""Find duplicate rows in a distributed corpus. Rows are compared by hash, in partitions."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import apache_beam as beam
import numpy as np

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import HASHES
from paraloom.beam_jobs.engine.unit_dofn import unit_of
from paraloom.beam_jobs.transforms.equal_texts import counted_if_shared, repeated

_ROWS_PER_PARTITION = 2_000_000
_NUMBER = 8  # bytes per number in a record, which contains a hash and a row number

Place = tuple[int, str, int, int]
"""Consecutive hashes of a unit in a file: unit index, path, first record, number of records."""

Hashes = tuple[np.ndarray, np.ndarray]  # hashes, uint64 [n, 2], and row numbers, int64 [n]


def temporary_prefix(output: str) -> str:
    """Return a new prefix for temporary files. A killed job may still write under its prefix."""
    return storage.join(output, HASHES, secrets.token_hex(8))


def grouped(keys: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Group values, [n, …], by keys, int [n]. Yield each key with its values, by ascending key.

    >>> [(key, values.tolist()) for key, values in grouped(np.array([7, 2, 7]), np.arange(3))]
    [(2, [1]), (7, [0, 2])]
    """
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    for key, part in zip(found, np.split(values[order], starts[1:]), strict=False):
        yield int(key), part


def partitions(rows: int) -> int:
    """Return the number of partitions. The hashes of a partition must fit into memory."""
    return 1 + rows // _ROWS_PER_PARTITION


def write_hashes(
    path: str, unit: int, hashed: Iterable[Hashes], count: int
) -> Iterator[tuple[int, Place]]:
    """Write the hashes of a unit to a file. Yield (partition, place of the hashes in the file)."""
    written, blocks = 0, (block for block in hashed if len(block[1]))
    if (first := next(blocks, None)) is None:
        return
    with storage.writing(path) as stream:
        for hashes, rows in chain([first], blocks):
            records = np.column_stack([hashes, rows.astype(np.uint64)])
            for partition, here in grouped(hashes[:, 0] % np.uint64(count), records):
                stream.write(here.tobytes())
                yield partition, (unit, path, written, len(here))
                written += len(here)


def read_hashes(
    places: Iterable[Place], columns: int = 2
) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return the unit index, the hashes and the row numbers of each place."""
    size = _NUMBER * (columns + 1)

    def read(place: Place) -> tuple[int, np.ndarray, np.ndarray]:
        unit, path, start, rows = place
        data = storage.read_bytes(path, start * size, (start + rows) * size)
        records = np.frombuffer(data, np.uint64).reshape(-1, columns + 1)
        return unit, records[:, :-1], records[:, -1].astype(np.int64)

    return storage.several(read, places)


def together(
    groups: Iterable[tuple[int, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Concatenate the output of `read_hashes`: hashes, unit indices and row numbers."""
    indices, hashes, of_units = zip(*groups, strict=True)
    units, rows = np.repeat(indices, [*map(len, of_units)]), np.concatenate(of_units)
    return np.concatenate(hashes), units, rows


def by_partition(
    units: beam.PCollection,
    split: Callable[[Any], Iterable[tuple[int, Any]]],
    find: Callable[[tuple[int, Iterable[Any]]], Iterable[tuple[int, Any]]],
    join: Callable[[Any, list[Any]], Any],
    more: beam.PCollection | None = None,
) -> beam.PCollection:
    """Compare the data of all units within partitions, and join the results with the units.

    Args:
        split: yields (partition, data) of a unit.
        find: yields (unit index, result), given (partition, data of all units).
        join: returns an element of the output, given a unit and its results.
        more: further pairs (partition, data), which belong to no unit.
    """
    kind = tuple[int, Any]
    hashed = units | "Hash" >> beam.FlatMap(split).with_output_types(kind)
    found = (
        (hashed if more is None else (hashed, more) | beam.Flatten())
        | "Together" >> beam.GroupByKey()
        | "Find" >> beam.FlatMap(find).with_output_types(kind)
    )
    by_index = beam.Map(lambda of: (unit_of(of).index, of)).with_output_types(kind)
    return (
        {"unit": units | "By index" >> by_index, "found": found}
        | "Group" >> beam.CoGroupByKey()
        | "Join" >> beam.Map(lambda e: join(next(iter(e[1]["unit"])), list(e[1]["found"])))
    )


def adding(element: Any, found: Any) -> tuple[Any, ...]:
    """Append a result to an element (a unit, or a tuple that begins with a unit)."""
    return *(element if isinstance(element, tuple) else (element,)), found


class WithDuplicates(beam.PTransform):
    """Finds duplicate rows, and appends the ascending numbers of these rows, int64, to each unit.

    The first of several equal rows is not a duplicate. Hashes are written to files, because Beam's
    local runner keeps shuffled data in memory.

    Args:
        hashes: yields blocks of the hashes of a unit. None: do not search for duplicates.
        rows: approximate number of rows in all units.
        output: the folder of the stage. `remove_orphans` later removes the temporary files.
        shared: whether a hash's first half is the id's hash, and its second half is the texts'
            hash. The result is then int64 [m, 2], with an entry for each row whose id occurs more
            than once: the row's number in the unit, and its number (from 1) among the rows with the
            same id and the same texts.
    """

    def __init__(
        self,
        hashes: Callable[[Any], Iterable[Hashes]] | None,
        rows: int,
        output: str,
        *,
        shared: bool = False,
    ):
        super().__init__()
        self.hashes, self.partitions, self.shared = hashes, partitions(rows), shared
        self.prefix = temporary_prefix(output)

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find equal hashes in each partition, and join the duplicates with their units."""
        read, count, prefix, shared = self.hashes, self.partitions, self.prefix, self.shared
        if read is None:
            return units | beam.Map(adding, np.empty((0, 2) if shared else 0, np.int64))

        def split(element: Any) -> Iterator[tuple[int, Place]]:
            index = unit_of(element).index
            return write_hashes(f"{prefix}-{index}", index, read(element), count)

        def find(element: tuple[int, Iterable[Place]]) -> Iterator[tuple[int, np.ndarray]]:
            hashes, indices, rows = together(read_hashes(element[1]))
            numbers = (counted_if_shared if shared else repeated)(hashes, indices, rows)
            values = np.column_stack([rows, numbers])
            yield from grouped(indices[numbers > 0], values[numbers > 0])

        def join(element: Any, found: list[np.ndarray]) -> tuple[Any, ...]:
            rows = np.concatenate([np.empty((0, 2), np.int64), *found])
            rows = rows[np.argsort(rows[:, 0])]
            return adding(element, rows if shared else rows[:, 0])

        return by_partition(units, split, find, join)
