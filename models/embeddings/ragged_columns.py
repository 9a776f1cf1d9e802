"""Columns of sentences as ids without padding."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paraloom.models.hashing import splitmix64

Kind = Literal["words", "trigrams", "sentence-trigrams"]
"""What an id represents: a word, a trigram of a padded word, or a trigram of a padded sentence."""


class RaggedIds(NamedTuple):
    """n sentences as ids: sentence i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: NDArray[np.int32]  # [total]
    offsets: NDArray[np.int64]  # [n + 1], from 0 to `total`

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of ids in each sentence, [n]."""
        return np.diff(self.offsets)


Sentences = dict[Kind, RaggedIds]
"""The ids of n sentences in each vocabulary that an encoder reads."""


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offsets of n ragged rows with these lengths, [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def positions(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each element in its ragged row: 0 … length - 1 for each row."""
    return ranges(np.zeros(len(offsets) - 1, np.int64), np.diff(offsets))


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the ranges `starts[i] … starts[i] + lengths[i] - 1`, [total]."""
    found = np.repeat(starts - offsets_of(lengths)[:-1], lengths)
    found += np.arange(len(found))
    return found


def take(column: RaggedIds, rows: NDArray[np.integer]) -> RaggedIds:
    """Return the sentences with the indices `rows`. An index may occur repeatedly."""
    starts = column.offsets[rows]
    lengths = column.offsets[rows + 1] - starts
    return RaggedIds(column.ids[ranges(starts, lengths)], offsets_of(lengths))


def join(columns: Sequence[RaggedIds]) -> RaggedIds:
    """Concatenate columns of sentences."""
    if not columns:
        return RaggedIds(np.zeros(0, np.int32), np.zeros(1, np.int64))
    lengths = np.concatenate([column.lengths for column in columns])
    return RaggedIds(np.concatenate([column.ids for column in columns]), offsets_of(lengths))


def take_all(sentences: Sentences, rows: NDArray[np.integer]) -> Sentences:
    """Apply `take` to the column of each vocabulary."""
    return {kind: take(column, rows) for kind, column in sentences.items()}


def join_all(batches: Sequence[Sentences]) -> Sentences:
    """Apply `join` to the columns of each vocabulary."""
    return {kind: join([batch[kind] for batch in batches]) for kind in batches[0]}


def fingerprints(column: RaggedIds) -> NDArray[np.uint64]:
    """Hash the ids of each sentence to 64 bits, [n]."""
    position = positions(column.offsets).astype(np.uint64)
    mixed = splitmix64(column.ids.astype(np.uint64) + (position << np.uint64(32)))
    sums = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=sums[1:])  # sums overflow, but the differences below are still exact
    hashes: NDArray[np.uint64] = sums[column.offsets[1:]] - sums[column.offsets[:-1]]
    return hashes
