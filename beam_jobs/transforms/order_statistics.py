"""Exact quantiles of a distributed column in two scans.

Rows are ordered by (score, hash of id). The first scan makes a sketch of the rows' keys, which
bounds the key at every rank. A sketch is deterministic, can be merged in any order, and has a known
error (Manku, Rajagopalan & Lindsay 1998; Agarwal et al., "Mergeable summaries", 2012). The second
scan counts the rows below the bounds and collects the rows within them, which contain the exact
key. The result does not depend on the order of merging.

A sketch of n rows has about 32,768 × log2(n / 32,768) keys of 8 bytes. The second scan collects at
most n / 32,768 × log2(n / 32,768) rows for each rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.transforms.merging import Merge, MergeGlobally, by_key
from paraloom.models.hashing import text_hashes

CAPACITY = 1 << 15  # largest number of keys per level of a sketch


@dataclass(frozen=True, slots=True)
class Column:
    """One score of a shard as sortable keys, uint32 [n], and the ids of its rows."""

    score: np.ndarray
    ids: pa.Array


Columns = dict[str, Column]  # scores of a shard by name; several scores may share `ids`

Targets = dict[str, list[tuple[int, int]]]  # (score, hash) of the rows at the ranks, by score name

ReadColumns = Callable[[Any], Columns]
Ranks = Callable[[dict[str, int]], dict[str, list[int]]]
"""Returns the ranks to find in each score, from its number of rows. The lowest row has rank 0."""


def sortable(score: np.ndarray) -> np.ndarray:
    """Convert float32 [n] into uint32 [n] that are in the same order. −0 and 0 become equal.

    >>> list(np.argsort(sortable(np.array([0.5, -2.0, 0.0], np.float32))))
    [np.int64(1), np.int64(2), np.int64(0)]
    """
    bits = (score.astype(np.float32) + np.float32(0)).view(np.uint32)
    negative = bits >> 31 == 1
    return np.where(negative, ~bits, bits | np.uint32(1 << 31))


@dataclass(slots=True)
class Sketch:
    """A sample of keys. Each key in `levels[l]` (uint64) represents 2^l rows."""

    levels: list[np.ndarray] = field(default_factory=list)
    # Largest errors, in rows, of the number of rows up to a key:
    over: int = 0  # if the number is too large
    under: int = 0  # if the number is too small

    @property
    def rows(self) -> int:
        """Number of rows that the sketch represents."""
        return sum(len(keys) << level for level, keys in enumerate(self.levels))

    def compress(self) -> None:
        """In levels with too many keys, move one key of each two neighbours to the next level."""
        for level, keys in enumerate(self.levels):
            if len(keys) <= CAPACITY:
                continue
            keys = np.sort(keys)
            odd = len(keys) % 2
            self.levels[level], pairs = keys[:odd], keys[odd:]
            lower = self.over <= self.under  # keeping the lower key counts its pair too early
            self.over += lower << level
            self.under += (not lower) << level
            if level + 1 == len(self.levels):
                self.levels.append(np.empty(0, np.uint64))
            kept = pairs[not lower :: 2]
            self.levels[level + 1] = np.concatenate([self.levels[level + 1], kept])

    def windows(self, ranks: Iterable[int]) -> Windows:
        """Return the smallest and the largest possible key at each of `ranks`."""
        wanted = np.array([rank for rank in ranks if 0 <= rank < self.rows], np.int64)
        if not len(wanted):
            return Windows(wanted, np.empty(0, np.uint64), np.empty(0, np.uint64))
        keys = np.concatenate(self.levels)
        weights = np.repeat(1 << np.arange(len(self.levels)), [*map(len, self.levels)])
        order = np.argsort(keys)
        keys, up_to = keys[order], np.cumsum(weights[order])
        last = np.append(keys[1:] != keys[:-1], True)
        keys, up_to = keys[last], up_to[last]
        # The key at a rank is larger than every key with at most `rank` rows up to it.
        below = np.searchsorted(up_to + self.under, wanted, side="right")
        first = np.where(below > 0, keys[below - 1] + np.uint64(1), np.uint64(0))
        # It is at most as large as a key with at least `rank` + 1 rows up to it.
        above = np.searchsorted(up_to - self.over, wanted, side="right")
        largest = np.append(keys, np.uint64(2**64 - 1))
        return Windows(wanted, first, largest[above])


@dataclass(frozen=True, slots=True)
class Windows:
    """Ranks, and the smallest and largest possible key at each rank: int64, uint64, uint64 [n]."""

    ranks: np.ndarray
    first: np.ndarray
    last: np.ndarray


@dataclass(frozen=True, slots=True)
class Windowed:
    """Number of rows below each window, int64 [n], and keys and hashes of the rows within it."""

    below: np.ndarray
    within: list[tuple[np.ndarray, np.ndarray]]  # keys and whole hashes, uint64 [m]

    def target(self, rank: int, window: int) -> tuple[int, int]:
        """Return (score, hash) of the row at a rank."""
        keys, hashes = self.within[window]
        row = np.lexsort((hashes, keys))[rank - self.below[window]]
        return int(keys[row]) >> 32, int(hashes[row])


def sample(columns: Columns, seed: int = 0) -> dict[str, Sketch]:
    """Sketch the scores of one shard; the sketches contain all keys."""
    return {name: Sketch([keys]) for name, keys, _ in _keys(columns, seed)}


def merge_samples(many: Iterable[dict[str, Sketch]]) -> dict[str, Sketch]:
    """Merge sketches by score."""
    return {name: _merged(group) for name, group in by_key(many).items()}


def _merged(sketches: Sequence[Sketch]) -> Sketch:
    result = Sketch(
        over=sum(sketch.over for sketch in sketches), under=sum(sketch.under for sketch in sketches)
    )
    for level in range(max(len(sketch.levels) for sketch in sketches)):
        of_level = [sketch.levels[level] for sketch in sketches if level < len(sketch.levels)]
        result.levels.append(np.concatenate(of_level))
    result.compress()
    return result


def collect(columns: Columns, windows: dict[str, Windows], seed: int = 0) -> dict[str, Windowed]:
    """Count the rows of one shard below the windows, and collect the rows within them."""
    found = {}
    for name, keys, hashes in _keys(columns, seed):
        order = np.argsort(keys)
        keys = keys[order]
        window = windows[name]
        first = np.searchsorted(keys, window.first, side="left")
        last = np.searchsorted(keys, window.last, side="right")
        rows = [slice(*ends) for ends in zip(first, last, strict=True)]
        found[name] = Windowed(first, [(keys[r], hashes[order[r]]) for r in rows])
    return found


def merge_windowed(many: Iterable[dict[str, Windowed]]) -> dict[str, Windowed]:
    """Merge the windows of several shards."""
    merged = {}
    for name, group in by_key(many).items():
        windows = zip(*(found.within for found in group), strict=True)
        both = (zip(*of, strict=True) for of in windows)
        within = [(np.concatenate(keys), np.concatenate(hashes)) for keys, hashes in both]
        merged[name] = Windowed(np.sum([found.below for found in group], axis=0), within)
    return merged


def choose(windowed: dict[str, Windowed], windows: dict[str, Windows]) -> Targets:
    """Choose the keys at the ranks from the windows of all shards."""
    return {
        name: [found.target(rank, i) for i, rank in enumerate(windows[name].ranks.tolist())]
        for name, found in windowed.items()
    }


def position(column: Column, targets: list[tuple[int, int]], seed: int = 0) -> np.ndarray:
    """Count the targets that are at most as large as the key of each row, int8 [n]."""
    result = np.zeros(len(column.score), np.int8)
    for score, hashed in targets:
        result += column.score > score
        tied = np.flatnonzero(column.score == score)
        if len(tied):
            result[tied] += text_hashes(column.ids.take(pa.array(tied)), seed) >= np.uint64(hashed)
    return result


class OrderStatistics(beam.PTransform):
    """Finds the rows at given ranks of each score of units, and returns them as `Targets`."""

    def __init__(self, read: ReadColumns, ranks: Ranks, *, seed: int = 0):
        super().__init__()
        self.read, self.ranks, self.seed = read, ranks, seed

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Scan twice. The second scan has the windows as a side input."""
        read, ranks, seed = self.read, self.ranks, self.seed

        def bound(sketches: dict[str, Sketch]) -> dict[str, Windows]:
            wanted = ranks({name: sketch.rows for name, sketch in sketches.items()})
            return {name: sketch.windows(wanted[name]) for name, sketch in sketches.items()}

        windows = beam.pvalue.AsSingleton(
            units
            | "Sample" >> beam.Map(lambda unit: sample(read(unit), seed))
            | "Merge samples" >> MergeGlobally(Merge(merge_samples, _keys_held))
            | "Bound" >> beam.Map(bound)
        )
        return (
            units
            | "Collect" >> beam.Map(lambda unit, of: collect(read(unit), of, seed), windows)
            | "Merge windows" >> MergeGlobally(Merge(merge_windowed, _rows_held))
            | "Choose" >> beam.Map(choose, windows)
        )


def _keys_held(sketches: dict[str, Sketch]) -> int:
    return sum(len(keys) for sketch in sketches.values() for keys in sketch.levels)


def _rows_held(windowed: dict[str, Windowed]) -> int:
    return sum(len(keys) for found in windowed.values() for keys, _ in found.within)


def _keys(columns: Columns, seed: int) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each score's name, keys (score and half of the hash) and hashes: uint64 [n]."""
    found: dict[int, np.ndarray] = {}  # hashes of ids that several columns share
    for name, column in columns.items():
        hashes = found.get(id(column.ids))
        if hashes is None:
            hashes = found[id(column.ids)] = text_hashes(column.ids, seed)
        yield (
            name,
            column.score.astype(np.uint64) << np.uint64(32) | hashes >> np.uint64(32),
            hashes,
        )
