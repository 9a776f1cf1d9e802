"""Columns of sentences without padding: ids and offsets; selection, concatenation, hashes."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paraloom.models.hashing import splitmix64

Kind = Literal["words", "trigrams", "sentence-trigrams"]
"""Kind of entries that ids stand for: words or trigrams."""


class RaggedIds(NamedTuple):
    """n sentences as ids: sentence i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: NDArray[np.int32]  # [total]
    offsets: NDArray[np.int64]  # [n + 1], from 0 to `total`

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Ids per sentence, [n]."""
        return np.diff(self.offsets)


Sentences = dict[Kind, RaggedIds]
"""The same n sentences as ids in each vocabulary that an encoder reads."""


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Offsets of ragged rows with these lengths, [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def positions(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position of each element in its ragged row: 0 … length - 1, row after row."""
    return ranges(np.zeros(len(offsets) - 1, np.int64), np.diff(offsets))


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the ranges `starts[i] … starts[i] + lengths[i] - 1`.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    found = np.repeat(starts - offsets_of(lengths)[:-1], lengths)
    found += np.arange(len(found))
    return found


def take(column: RaggedIds, rows: NDArray[np.integer]) -> RaggedIds:
    """Select sentences by `rows`, which may be repeated.

    >>> take(RaggedIds(np.int32([7, 8, 9]), np.int64([0, 2, 3])), np.array([1, 0, 1]))
    RaggedIds(ids=array([9, 7, 8, 9], dtype=int32), offsets=array([0, 1, 3, 4]))
    """
    starts = column.offsets[rows]
    lengths = column.offsets[rows + 1] - starts
    return RaggedIds(column.ids[ranges(starts, lengths)], offsets_of(lengths))


def join(columns: Sequence[RaggedIds]) -> RaggedIds:
    """Concatenate the sentences of all columns."""
    if not columns:
        return RaggedIds(np.zeros(0, np.int32), np.zeros(1, np.int64))
    lengths = np.concatenate([column.lengths for column in columns])
    return RaggedIds(np.concatenate([column.ids for column in columns]), offsets_of(lengths))


def take_all(sentences: Sentences, rows: NDArray[np.integer]) -> Sentences:
    """Apply `take` in every vocabulary."""
    return {kind: take(column, rows) for kind, column in sentences.items()}


def join_all(batches: Sequence[Sentences]) -> Sentences:
    """Apply `join` in every vocabulary."""
    return {kind: join([batch[kind] for batch in batches]) for kind in batches[0]}


def fingerprints(column: RaggedIds) -> NDArray[np.uint64]:
    """Hash each sentence's ids to 64 bits, [n]. A million different sentences collide with
    probability 3e-8."""
    position = positions(column.offsets).astype(np.uint64)
    mixed = splitmix64(column.ids.astype(np.uint64) + (position << np.uint64(32)))
    sums = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=sums[1:])  # wraps around, and so do the differences
    hashes: NDArray[np.uint64] = sums[column.offsets[1:]] - sums[column.offsets[:-1]]
    return hashes
