"""Duplicate rows of a distributed corpus: hashed, partitioned by hash, and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from models.errors import UserError

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


def normalised(text: pa.Array) -> pa.Array:
    """Lower-cased letters and digits, separated by one space, to compare texts.

    >>> normalised(pa.array(["A dog -- barks!"]))[0].as_py()
    'a dog barks'
    """
    lower = pc.utf8_lower(pc.utf8_normalize(text, "NFKC"))
    spaced = pc.replace_substring_regex(lower, r"[^\p{L}\p{M}\p{N}]+", " ")
    return pc.utf8_trim(spaced, " ")


def owners(hashes: np.ndarray, units: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The index of the first, by (unit, row), of those with the same hash: int64 [n]."""
    order = np.lexsort((rows, units, hashes[:, 1], hashes[:, 0]))
    sorted_hashes = hashes[order]
    first = np.arange(len(order))
    first[1:][(sorted_hashes[1:] == sorted_hashes[:-1]).all(axis=1)] = 0
    result = np.empty(len(order), np.int64)
    result[order] = order[np.maximum.accumulate(first)]
    return result


def repeated(hashes: np.ndarray, units: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which rows [n] (bool) have the hash of an earlier one, by (unit, row)."""
    return np.asarray(owners(hashes, units, rows) != np.arange(len(rows)))


def grouped(keys: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each distinct key, ascending, and its values in their order: of int [n] and any [n, …].

    >>> [(key, values.tolist()) for key, values in grouped(np.array([7, 2, 7]), np.arange(3))]
    [(2, [1]), (7, [0, 2])]
    """
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    for key, part in zip(found, np.split(values[order], starts[1:]), strict=False):
        yield int(key), part


def partitions(rows: int) -> int:
    """The number of partitions of so many hashes, each of which fits in a worker's memory."""
    return 1 + rows // _ROWS_PER_PARTITION


def partition_hashes(
    unit: int, hashed: Iterable[Hashes], count: int
) -> Iterator[tuple[int, tuple[int, np.ndarray, np.ndarray]]]:
    """Split blocks of hashes of a unit, given by its index, into `count` partitions by value."""
    for hashes, rows in hashed:
        part = hashes[:, 0] % np.uint64(count)
        for partition, here in grouped(part, np.arange(len(part))):
            yield partition, (unit, hashes[here], rows[here])


def write_hashes(
    folder: str, unit: int, hashed: Iterable[Hashes], count: int
) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Write the hashes of a unit to a file in `folder`, each block ordered by partition.

    Yields the partition, and where it is: the unit, and the first and the last row in its file.
    """
    written = 0
    with _written(Path(folder, str(unit))) as stream:
        for hashes, rows in hashed:
            part = hashes[:, 0] % np.uint64(count)
            order = np.argsort(part, kind="stable")
            records = np.column_stack([hashes, rows.astype(np.uint64)])[order]
            stream.write(records.tobytes())
            found, starts = np.unique(part[order], return_index=True)
            stops = np.searchsorted(part[order], found, side="right")
            for number, start, stop in zip(found, starts, stops, strict=True):
                yield int(number), (unit, written + int(start), written + int(stop))
            written += len(order)


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("wb") as stream:
            yield stream
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error


def read_hashes(
    folder: str, groups: Iterable[tuple[int, int, int]]
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The hashes and rows of a partition, by unit, from the files of `write_hashes`."""
    for unit, start, stop in groups:
        path = Path(folder, str(unit))
        records = np.fromfile(path, np.uint64, (stop - start) * 3, offset=start * 24).reshape(-1, 3)
        yield unit, records[:, :2], records[:, 2].astype(np.int64)


def write_duplicates(folder: str, partition: int, units: np.ndarray, rows: np.ndarray) -> bool:
    """Write the duplicate rows of a partition to a file, by unit; False if there are none."""
    order = np.lexsort((rows, units))
    with _written(Path(folder, f"duplicates-{partition}")) as stream:
        stream.write(np.column_stack([units, rows])[order].astype(np.int64).tobytes())
    return bool(len(rows))


def read_duplicates(folder: str, unit: int, partitions: Iterable[int]) -> np.ndarray:
    """The duplicate rows of a unit, from the files of these partitions: sorted, int64 [n]."""
    found = [np.empty(0, np.int64)]
    for partition in partitions:
        records = np.memmap(Path(folder, f"duplicates-{partition}"), np.int64, "r").reshape(-1, 2)
        first, last = np.searchsorted(records[:, 0], [unit, unit + 1])
        found.append(records[first:last, 1].copy())  # and close the file
    return np.sort(np.concatenate(found))


def together(
    groups: Iterable[tuple[int, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The hashes, units and rows of a partition, from those of each unit."""
    indices, hashes, of_units = zip(*groups, strict=True)
    units, rows = np.repeat(indices, [*map(len, of_units)]), np.concatenate(of_units)
    return np.concatenate(hashes), units, rows


class WithDuplicates(beam.PTransform):
    """Units in; (unit, its duplicate rows: sorted, int64) out.

    The first of equal rows, by unit and row, is not a duplicate.

    Args:
        hashes: reads a unit's hashes, in blocks of any size.
        rows: approximate number of rows of all units; it determines the number of partitions.
        folder: for files with hashes and duplicates, which all workers can read; None shuffles
            them. Beam's local runner keeps what it shuffles in memory.
    """

    def __init__(
        self, hashes: Callable[[Any], Iterable[Hashes]], rows: int, folder: str | None = None
    ):
        super().__init__()
        self.hashes, self.partitions, self.folder = hashes, partitions(rows), folder

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find equal hashes, partition by partition, then join the duplicates with their units."""
        read, count, folder = self.hashes, self.partitions, self.folder

        def split(unit: Any) -> Iterator[tuple[int, Any]]:
            if folder:
                return write_hashes(folder, unit.index, read(unit), count)
            return partition_hashes(unit.index, read(unit), count)

        def find(element: tuple[int, Iterable[Any]]) -> Iterator[Any]:
            groups = read_hashes(folder, element[1]) if folder else element[1]
            hashes, indices, rows = together(groups)
            again = repeated(hashes, indices, rows)
            if not folder:
                yield from grouped(indices[again], rows[again])
            elif write_duplicates(folder, element[0], indices[again], rows[again]):
                yield element[0]

        def join(element: tuple[int, dict[str, Iterable[Any]]]) -> tuple[Any, np.ndarray]:
            (unit,) = element[1]["unit"]
            found = [np.empty(0, np.int64), *element[1]["duplicates"]]
            return unit, np.sort(np.concatenate(found))

        duplicates = (
            units
            | "Hash" >> beam.FlatMap(split).with_output_types(tuple[int, Any])
            | "Together" >> beam.GroupByKey()
            | "Find" >> beam.FlatMap(find).with_output_types(int if folder else tuple[int, Any])
        )
        if folder:
            return units | "Read" >> beam.Map(
                lambda unit, partitions: (unit, read_duplicates(folder, unit.index, partitions)),
                beam.pvalue.AsList(duplicates),
            )
        by_index = units | "By index" >> beam.Map(lambda u: (u.index, u)).with_output_types(
            tuple[int, Any]
        )
        return (
            {"unit": by_index, "duplicates": duplicates}
            | "Group" >> beam.CoGroupByKey()
            | "Join" >> beam.Map(join)
        )
