"""First occurrences of texts in a distributed corpus: something is made of each text only once.

Of equal texts in several units, the first one by (unit, row) is the owner's. Only hashes and row
numbers are shuffled to find out who owns what: 24 bytes for each distinct text of a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.transforms.duplicates import (
    by_partition,
    by_value,
    grouped,
    owners,
    partitions,
    row_hash,
    together,
)


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """The texts that a unit shares with other units.

    Attributes:
        repeats: rows whose text occurs in an earlier unit: sorted, int64 [n], one for each text.
        requests: texts that the unit owns and others need, int64 [m, 3]: the row here, the index of
            the other unit, and the row there.
    """

    repeats: np.ndarray
    requests: np.ndarray


def distinct_texts(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The code of each text, int32 [n], and the first row of each code, int64 [m], ascending.

    >>> codes, first = distinct_texts(pa.array(["b", "a", "b", "c"]))
    >>> codes.tolist(), first.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    """
    codes = texts.dictionary_encode().indices.to_numpy()
    first = np.unique(codes, return_index=True)[1]
    return codes, first.astype(np.int64)


def spread(codes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give every row what was made of a row with the same code.

    Args:
        codes: the row's, int [n].
        rows: the row that each of m results was made of; a row may have several results.

    Returns:
        the row and the result of each combination, int64 [k]: by row, then in the order of `rows`.

    >>> row, result = spread(np.array([0, 1, 0]), np.array([1, 0]))
    >>> row.tolist(), result.tolist()
    ([0, 1, 2], [1, 0, 1])
    """
    made = codes[rows]
    order = np.argsort(made, kind="stable")
    row, at = slots(made[order], codes)
    return row, order[at]


def slots(values: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each wanted value and each place that has it among sorted values: the indices of both.

    >>> which, place = slots(np.array([3, 3, 7]), np.array([7, 3]))
    >>> which.tolist(), place.tolist()
    ([0, 1, 1], [2, 0, 1])
    """
    starts, ends = (np.searchsorted(values, wanted, side) for side in ("left", "right"))
    counts = ends - starts
    if len(counts) and not counts.all():
        raise ValueError(f"nothing was made of {np.count_nonzero(counts == 0)} of the rows")
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(np.arange(len(wanted)), counts), np.repeat(starts, counts) + within


class WithFirstOccurrences(beam.PTransform):
    """Units in; (unit, `Occurrences`) out.

    Args:
        texts: reads a unit's texts.
        rows: approximate number of rows of all units.
    """

    def __init__(self, texts: Callable[[Any], pa.Array], rows: int):
        super().__init__()
        self.texts, self.partitions = texts, partitions(rows)

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Group equal hashes, partition by partition, and join what is found with the units."""
        texts, count = self.texts, self.partitions

        def hashed(unit: Any) -> Iterator[tuple[int, Any]]:
            found = texts(unit)
            _, first = distinct_texts(found)
            hashes = row_hash(found.take(pa.array(first)))
            for partition, here in by_value(hashes, count):
                yield partition, (unit.index, hashes[here], first[here])

        def join(unit: Any, found: list[np.ndarray]) -> tuple[Any, Occurrences]:
            repeats = [rows for rows in found if rows.ndim == 1]
            requests = [rows for rows in found if rows.ndim == 2]
            sorted_requests = np.concatenate([np.empty((0, 3), np.int64), *requests])
            order = np.lexsort((sorted_requests[:, 2], sorted_requests[:, 1]))
            return unit, Occurrences(
                np.sort(np.concatenate([np.empty(0, np.int64), *repeats])), sorted_requests[order]
            )

        return by_partition(units, hashed, _find, join)


def _find(
    element: tuple[int, Iterable[tuple[int, np.ndarray, np.ndarray]]],
) -> Iterator[tuple[int, np.ndarray]]:
    """Per unit: rows that another unit translates, [n], and rows that others request, [m, 3]."""
    hashes, units, rows = together(element[1])
    owner = owners(hashes, units, rows)
    repeats = np.flatnonzero(owner != np.arange(len(owner)))
    owner = owner[repeats]
    requests = np.stack([rows[owner], units[repeats], rows[repeats]], axis=1)
    yield from grouped(units[repeats], rows[repeats])
    yield from grouped(units[owner], requests)
