"""Rows that repeat an earlier one, found without holding the corpus: hash, partition, sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

_ROWS_A_PARTITION = 2_000_000


def row_hash(*columns: pa.Array) -> np.ndarray:
    """A 128-bit hash of each row's texts (XXH3), uint64 [n, 2].

    A control character joins the columns: it occurs in no text that was let in.
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
    """(unit index, (hashes uint64 [n, 2], rows int64 [n])) in; (unit index, repeated rows) out.

    Of equal rows the first one, by unit and row, is no repeat. Units without repeats give nothing.

    Args:
        rows: about how many rows there are; sets the number of partitions.
    """

    def __init__(self, rows: int):
        super().__init__()
        self.partitions = 1 + rows // _ROWS_A_PARTITION

    def expand(self, hashed: beam.PCollection) -> beam.PCollection:
        """Bring equal hashes together, partition by partition."""
        partitions = self.partitions

        def split(
            element: tuple[int, tuple[np.ndarray, np.ndarray]],
        ) -> Iterator[tuple[int, Any]]:
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
            | "Repeats" >> beam.FlatMap(find).with_output_types(tuple[int, Any])
        )
