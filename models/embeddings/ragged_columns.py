"""Columns of sentences without padding: flat ids and offsets, taken, joined and told apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.embeddings.vocabulary import FlatIds, Kind

Sentences = dict[Kind, FlatIds]
"""The same n sentences in the ids of each vocabulary an encoder reads: "words", "trigrams"."""


def take(flat: FlatIds, rows: np.ndarray) -> FlatIds:
    """The sentences of `rows` (an integer array; a row may stand there more than once).

    >>> take(FlatIds(np.int32([7, 8, 9]), np.int64([0, 2, 3])), np.array([1, 0, 1]))
    FlatIds(ids=array([9, 7, 8, 9], dtype=int32), offsets=array([0, 1, 3, 4]))
    """
    starts = flat.offsets[rows]
    lengths = flat.offsets[rows + 1] - starts
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    where = np.repeat(starts - offsets[:-1], lengths)
    where += np.arange(len(where))
    return FlatIds(flat.ids[where], offsets)


def join(parts: Sequence[FlatIds]) -> FlatIds:
    """All sentences of all parts, in order."""
    if not parts:
        return FlatIds(np.zeros(0, np.int32), np.zeros(1, np.int64))
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return FlatIds(np.concatenate([part.ids for part in parts]), offsets)


def take_all(sentences: Sentences, rows: np.ndarray) -> Sentences:
    """`take` in every vocabulary."""
    return {kind: take(flat, rows) for kind, flat in sentences.items()}


def join_all(parts: Sequence[Sentences]) -> Sentences:
    """`join` in every vocabulary."""
    return {kind: join([part[kind] for part in parts]) for kind in parts[0]}


def count(sentences: Sentences) -> int:
    """How many sentences there are."""
    return len(next(iter(sentences.values())).offsets) - 1


def fingerprints(flat: FlatIds) -> np.ndarray:
    """A 64-bit hash of each sentence's sequence of ids, uint64 [sentences].

    Equal sentences have equal hashes; among a million different ones, two are taken for the same
    with a probability of 3e-8.
    """
    position = np.arange(len(flat.ids), dtype=np.uint64)
    position -= np.repeat(flat.offsets[:-1].astype(np.uint64), flat.lengths)
    mixed = _mix(flat.ids.astype(np.uint64) + (position << np.uint64(32)))
    sums = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=sums[1:])  # wraps around, and so do the differences
    return sums[flat.offsets[1:]] - sums[flat.offsets[:-1]]


def _mix(x: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every input bit changes half of the output bits."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
