"""Exact quantiles of a distributed column in two scans.

The key of a row is (score, hash of its id). The first scan computes a sketch of all keys, which
gives a lower and an upper bound of the key at each rank (Manku, Rajagopalan & Lindsay 1998; Agarwal
et al., "Mergeable summaries", 2012). The second scan counts the rows below the lower bound, and
collects the rows between the bounds, to find the exact key.

A sketch of n rows has about 32,768 × log2(n / 32,768) keys of 8 bytes: the score and half the
hash. The second scan collects at most n / 32,768 × log2(n / 32,768) rows for each rank.
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

CAPACITY = 1 << 15  # maximum number of keys per level of a sketch


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a score in a shard (uint32 [n], from `sortable`), and the ids of the rows."""

    score: np.ndarray
    ids: pa.Array


Columns = dict[str, Column]  # by name of the score

Targets = dict[str, list[tuple[int, int]]]  # (score, hash) at each rank, by name of the score

ReadColumns = Callable[[Any], Columns]
Ranks = Callable[[dict[str, int]], dict[str, list[int]]]
"""Given the number of rows of each score, returns the ranks to find. Rank 0 is the lowest."""


def sortable(score: np.ndarray) -> np.ndarray:
    """Convert float32 [n] to uint32 [n] with the same order. −0 and 0 become equal.

    >>> list(np.argsort(sortable(np.array([0.5, -2.0, 0.0], np.float32))))
    [np.int64(1), np.int64(2), np.int64(0)]
    """
    bits = (score.astype(np.float32) + np.float32(0)).view(np.uint32)
    negative = bits >> 31 == 1
    return np.where(negative, ~bits, bits | np.uint32(1 << 31))


@dataclass(slots=True)
class Sketch:
    """A sample of the keys of many rows. Each key in `levels[l]` (uint64) represents 2^l rows."""

    levels: list[np.ndarray] = field(default_factory=list)
    over: int = 0  # the estimated number of rows with keys up to k is at most this much too large
    under: int = 0  # the estimated number is at most this much too small

    @property
    def rows(self) -> int:
        """Number of rows that the sketch represents."""
        return sum(len(keys) << level for level, keys in enumerate(self.levels))

    def compress(self) -> None:
        """In levels with too many keys, move one of two neighbours up, and drop the other."""
        for level, keys in enumerate(self.levels):
            if len(keys) <= CAPACITY:
                continue
            keys = np.sort(keys)
            odd = len(keys) % 2
            self.levels[level], pairs = keys[:odd], keys[odd:]
            lower = self.over <= self.under  # whether to keep the lower keys, to balance errors
            self.over += lower << level
            self.under += (not lower) << level
            if level + 1 == len(self.levels):
                self.levels.append(np.empty(0, np.uint64))
            kept = pairs[not lower :: 2]
            self.levels[level + 1] = np.concatenate([self.levels[level + 1], kept])

    def windows(self, ranks: Iterable[int]) -> Windows:
        """Return bounds of the key at each rank, except ranks that no row has."""
        wanted = np.array([rank for rank in ranks if 0 <= rank < self.rows], np.int64)
        if not len(wanted):
            return Windows(wanted, np.empty(0, np.uint64), np.empty(0, np.uint64))
        keys = np.concatenate(self.levels)
        weights = np.repeat(1 << np.arange(len(self.levels)), [*map(len, self.levels)])
        order = np.argsort(keys)
        keys, up_to = keys[order], np.cumsum(weights[order])
        last = np.append(keys[1:] != keys[:-1], True)
        keys, up_to = keys[last], up_to[last]
        # The key at `rank` is larger than a key k if at most `rank` rows have keys up to k.
        below = np.searchsorted(up_to + self.under, wanted, side="right")
        first = np.where(below > 0, keys[below - 1] + np.uint64(1), np.uint64(0))
        # The key at `rank` is at most k if at least `rank` + 1 rows have keys up to k.
        above = np.searchsorted(up_to - self.over, wanted, side="right")
        largest = np.append(keys, np.uint64(2**64 - 1))
        return Windows(wanted, first, largest[above])


@dataclass(frozen=True, slots=True)
class Windows:
    """Bounds of the keys at n ranks."""

    ranks: np.ndarray  # int64 [n]
    first: np.ndarray  # smallest possible key at each rank, uint64 [n]
    last: np.ndarray  # largest possible key at each rank, uint64 [n]


@dataclass(frozen=True, slots=True)
class Windowed:
    """Rows within and below each of n windows."""

    below: np.ndarray  # number of rows below each window, int64 [n]
    within: list[tuple[np.ndarray, np.ndarray]]  # keys and hashes of each window's m rows, uint64

    def target(self, rank: int, window: int) -> tuple[int, int]:
        """Return (score, hash) of the row at a rank, which must be in the window."""
        keys, hashes = self.within[window]
        row = np.lexsort((hashes, keys))[rank - self.below[window]]
        return int(keys[row]) >> 32, int(hashes[row])


def sample(columns: Columns, seed: int = 0) -> dict[str, Sketch]:
    """Return a sketch of each score of a shard. The sketch contains the keys of all rows."""
    return {name: Sketch([keys]) for name, keys, _ in _keys(columns, seed)}


def merge_samples(many: Iterable[dict[str, Sketch]]) -> dict[str, Sketch]:
    """Merge the sketches of several shards."""
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
    """Count the rows of a shard below each window, and collect the rows within the window."""
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
    """Merge the results of `collect` for several shards."""
    merged = {}
    for name, group in by_key(many).items():
        windows = zip(*(found.within for found in group), strict=True)
        both = (zip(*of, strict=True) for of in windows)
        within = [(np.concatenate(keys), np.concatenate(hashes)) for keys, hashes in both]
        merged[name] = Windowed(np.sum([found.below for found in group], axis=0), within)
    return merged


def choose(windowed: dict[str, Windowed], windows: dict[str, Windows]) -> Targets:
    """Return the row at each rank, given the merged results of `collect` for all shards."""
    return {
        name: [found.target(rank, i) for i, rank in enumerate(windows[name].ranks.tolist())]
        for name, found in windowed.items()
    }


def position(column: Column, targets: list[tuple[int, int]], seed: int = 0) -> np.ndarray:
    """Return the number of targets up to each row's key, int8 [n]: in `bucket`, the decile."""
    result = np.zeros(len(column.score), np.int8)
    for score, hashed in targets:
        result += column.score > score
        tied = np.flatnonzero(column.score == score)
        if len(tied):
            result[tied] += text_hashes(column.ids.take(pa.array(tied)), seed) >= np.uint64(hashed)
    return result


class OrderStatistics(beam.PTransform):
    """Finds the rows at given ranks of each score. The output is one `Targets`."""

    def __init__(self, read: ReadColumns, ranks: Ranks, *, seed: int = 0):
        super().__init__()
        self.read, self.ranks, self.seed = read, ranks, seed

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Scan twice. The bounds of the first scan are a side input of the second scan."""
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
    """Yield (name, keys of 8 bytes, hashes) of each score."""
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
