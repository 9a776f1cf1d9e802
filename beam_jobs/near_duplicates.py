"""Find near-copies among the rows of a distributed corpus, with MinHash (Broder, 1997).

Each row has two texts. Two rows are near-copies if the Jaccard index of character n-grams reaches a
threshold, both for their first texts and for their second texts. A row has several bands, which are
hashes of a few MinHash values each. All rows with the same value of a band form a group. In each
group, the Jaccard index of a row is computed with only two rows: the first row and the preceding
row. The time per row is therefore constant. The result depends only on the texts and their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import REPEATS_NEARLY
from paraloom.beam_jobs.engine.unit_dofn import unit_of
from paraloom.beam_jobs.transforms import duplicates
from paraloom.beam_jobs.transforms.duplicates import Hashes, Place, grouped
from paraloom.models.hashing import splitmix64

_GRAM = 4  # characters per n-gram
_LONGEST = 5_000  # characters to compare per side, so that the texts of a row take less than 64 KB
_FOUND = 0.95  # least probability that two rows at the threshold share a band
_MINIMA = 200  # largest number of MinHash values per row, which limits the time
_BAND = 8  # largest number of MinHash values per band; large bands rarely match unrelated rows
_AT_ONCE = 1_000  # rows per block, so that their n-grams fit into the processor's cache
# One request reads two texts if at most this many bytes are between them. The same number limits
# the pairs that are compared at once.
_GAP = 1 << 16


class Texts(NamedTuple):
    """Row numbers in a unit, `normalised` texts of both sides, and ids, in the order of rows."""

    rows: np.ndarray  # int64 [n]
    first: pa.Array
    second: pa.Array
    ids: pa.Array


Near = tuple[np.ndarray, pa.Array]
"""(ascending numbers of rows that nearly repeat an earlier row, int64 [n]; ids of earlier rows)"""


def bands(threshold: float) -> tuple[int, int]:
    """Return the number of bands, and the number of MinHash values per band.

    >>> bands(0.8), bands(0.6)
    ((17, 8), (38, 5))
    """
    for size in range(_BAND, 0, -1):
        miss = math.log1p(-(min(threshold, 0.99) ** size))
        count = math.ceil(math.log(1 - _FOUND) / miss)
        if count * size <= _MINIMA:
            break
    return count, size


def ngrams(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes of all character n-grams, uint64 [k], and their number per text, int64 [n]."""
    padded = pc.binary_join_element_wise(texts, "\0" * _GRAM, "")
    lengths = pc.utf8_length(padded).to_numpy().astype(np.int64)
    text = bytes(padded.buffers()[2] or b"").decode()
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    hashes = np.zeros(max(len(codes) - _GRAM + 1, 0), np.uint64)
    for place in range(_GRAM):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + codes[place:][: len(hashes)]
    counts = np.maximum(lengths - 2 * _GRAM + 1, 1)  # a text shorter than `_GRAM` has one n-gram
    ends = np.cumsum(counts)
    shift = np.cumsum(lengths) - lengths - (ends - counts)
    return splitmix64(hashes[np.arange(counts.sum()) + np.repeat(shift, counts)]), counts


def band_keys(first: pa.Array, second: pa.Array, threshold: float) -> np.ndarray:
    """Return one hash per row and band, uint64 [n, bands], from the n-grams of both sides."""
    count, size = bands(threshold)
    random = splitmix64(np.arange(2 * count * size, dtype=np.uint64)).astype(np.uint32)
    keys = np.empty((len(first), count), np.uint64)
    for at in range(0, len(first), _AT_ONCE):
        sides = []
        for salt, side in enumerate((first, second)):
            grams, counts = ngrams(side.slice(at, _AT_ONCE))
            short = splitmix64(grams, salt).astype(np.uint32)
            sides.append((short, np.empty_like(short), np.cumsum(counts) - counts))
        for band in range(count):
            key = np.full(len(counts), band, np.uint64)
            for one in range(2 * band * size, 2 * (band + 1) * size, 2):
                least = []
                for short, hashed, starts in sides:
                    np.bitwise_xor(short, random[one], out=hashed)
                    np.multiply(hashed, random[one + 1] | np.uint32(1), out=hashed)
                    least.append(np.minimum.reduceat(hashed, starts))
                key = splitmix64(key ^ np.minimum(*least))
            keys[at : at + _AT_ONCE, band] = key
    return keys


def candidates(keys: np.ndarray, *order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find entries to compare. Return the later and the earlier entry of each pair, as indices.

    Each entry is paired with the first and with the preceding entry that has the same key. No pair
    is repeated. Entries with the same key are sorted by the arrays in `order`. As in `np.lexsort`,
    the last array counts most.

    >>> [of.tolist() for of in candidates(np.array([5, 7, 5, 5, 5]), np.arange(5))]
    [[2, 3, 4, 3, 4], [0, 0, 0, 2, 3]]
    """
    sorted_ = np.lexsort((*order, keys))
    same = np.append(False, keys[sorted_[1:]] == keys[sorted_[:-1]])[: len(keys)]
    at = np.arange(len(keys))
    first = np.maximum.accumulate(np.where(same, 0, at))
    later, third = at[same], at[same & (first < at - 1)]
    pairs = np.append(later, third), np.append(first[later], third - 1)
    return sorted_[pairs[0]], sorted_[pairs[1]]


def jaccard(one: pa.Array, other: pa.Array) -> np.ndarray:
    """Compare texts pairwise: return the Jaccard index of their character n-grams, float64 [n].

    >>> jaccard(pa.array(["a dog barks"]), pa.array(["a dog bark"]))
    array([0.875])
    """
    sets, sizes = [], []
    for texts in (one, other):
        grams, counts = ngrams(texts)
        rows = np.repeat(np.arange(len(texts)), counts)
        once, at = np.unique(grams ^ splitmix64(rows.astype(np.uint64)), return_index=True)
        sets.append(once)
        sizes.append(np.bincount(rows[at], minlength=len(texts)))
    common = np.bincount(rows[at][np.isin(once, sets[0], assume_unique=True)], minlength=len(texts))
    return np.asarray(common / (sizes[0] + sizes[1] - common))


def near_copies(first: pa.Array, second: pa.Array, threshold: float) -> np.ndarray:
    """Mark the rows of normalised texts that nearly repeat an earlier row: bool [n]."""
    keys, found = band_keys(first, second, threshold), np.zeros(len(first), bool)
    rows = np.repeat(np.arange(len(first)), keys.shape[1])
    later, earlier = candidates(keys.ravel(), rows)
    pairs = np.unique(np.column_stack([rows[later], rows[earlier]]), axis=0)
    for part in np.split(pairs, range(_GAP, len(pairs), _GAP)):
        one, other = map(pa.array, part.T)
        near = [jaccard(side.take(one), side.take(other)) >= threshold for side in (first, second)]
        found[part[near[0] & near[1], 0]] = True
    return found


def reasons(ids: pa.Array) -> np.ndarray:
    """Return the reasons for rejection, object [n], which contain the `ids` of earlier rows."""
    return np.array([f"{REPEATS_NEARLY}, id {id}" for id in ids.to_pylist()], object)


class WithNearDuplicates(beam.PTransform):
    """Finds near-copies in units, and appends a `Near` to each unit.

    An element is a unit, or a tuple of a unit and further input. Like `WithDuplicates`, the
    transform writes intermediate data to files.

    Args:
        texts: reads the texts of a unit, in blocks of any size.
        rows: approximate number of rows in all units.
        output: the stage's folder, where `remove_orphans` later removes the files.
        threshold: least Jaccard index of near-copies; None to find nothing.
    """

    def __init__(
        self,
        texts: Callable[[Any], Iterable[Texts]],
        rows: int,
        output: str,
        threshold: float | None,
    ):
        super().__init__()
        self.texts, self.rows, self.threshold = texts, rows, threshold
        self.prefix = duplicates.temporary_prefix(output)

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find rows to compare in each partition, and compare them in the unit of the later row."""
        texts, prefix, threshold = self.texts, self.prefix, self.threshold
        if threshold is None:
            return units | beam.Map(duplicates.adding, None)
        count = duplicates.partitions(self.rows * bands(threshold)[0])

        def split(element: Any) -> Iterator[tuple[int, Place]]:
            index = unit_of(element).index
            blocks = (block for block in texts(element) if len(block.rows))
            if (first := next(blocks, None)) is not None:
                with storage.writing(f"{prefix}-texts-{index}") as stream:
                    hashes = _hashes(chain([first], blocks), stream, threshold)
                    yield from duplicates.write_hashes(f"{prefix}-{index}", index, hashes, count)

        def find(element: tuple[int, Iterable[Place]]) -> Iterator[tuple[int, Place]]:
            number, places = element
            hashes, of, rows = duplicates.together(duplicates.read_hashes(places))
            later, earlier = candidates(hashes[:, 0], rows, of)
            pairs = of[later], of[earlier], hashes[earlier, 1], hashes[later, 1]
            records = np.column_stack([column.astype(np.uint64) for column in pairs])
            path = f"{prefix}-candidates-{number}"
            yield from duplicates.write_hashes(path, number, [(records, rows[later])], 1 << 32)

        def join(element: Any, found: list[Place]) -> tuple[Any, ...]:
            return duplicates.adding(element, _compare(found, prefix, threshold))

        return duplicates.by_partition(units, split, find, join)


def _hashes(blocks: Iterable[Texts], stream: BinaryIO, threshold: float) -> Iterator[Hashes]:
    """Write texts into `stream`. Yield each row's band hashes, and the place of its texts there:
    the first byte × 65,536 + the number of bytes."""
    written = 0
    for rows, *sides, ids in blocks:
        first, second = (pc.utf8_slice_codeunits(side, 0, _LONGEST) for side in sides)
        joined = pc.binary_join_element_wise(first, second, ids, "\n")
        data = joined.cast(pa.binary())
        lengths = pc.binary_length(data).to_numpy().astype(np.uint64)
        starts = np.uint64(written) + np.cumsum(lengths) - lengths
        written += stream.write(bytes(data.buffers()[2]))
        keys = band_keys(first, second, threshold)
        places = np.repeat(starts << np.uint64(16) | lengths, keys.shape[1])
        yield np.column_stack([keys.ravel(), places]), np.repeat(rows, keys.shape[1])


def _compare(found: list[Place], prefix: str, threshold: float) -> Near:
    read = duplicates.read_hashes(found, columns=4)
    if not read:
        return np.empty(0, np.int64), pa.array([], pa.string())
    hashes, _, rows = duplicates.together(read)
    records = np.column_stack([rows.astype(np.uint64), hashes[:, 1:], hashes[:, :1]])
    records = np.unique(records, axis=0)
    ids = np.full(len(records), None, object)
    for unit, at in grouped(records[:, 1].astype(np.int64), np.arange(len(records))):
        for part in np.split(at, range(_GAP, len(at), _GAP)):
            own = _read_texts(f"{prefix}-texts-{int(records[0, 4])}", records[part, 3])
            earlier = _read_texts(f"{prefix}-texts-{unit}", records[part, 2])
            sides = zip(own[:2], earlier[:2], strict=True)
            first, second = (jaccard(*pair) >= threshold for pair in sides)
            ids[part[first & second]] = np.array(earlier[2].to_pylist(), object)[first & second]
    near = np.flatnonzero(ids != None)  # noqa: E711
    rows, once = np.unique(records[near, 0].astype(np.int64), return_index=True)
    return rows, pa.array(ids[near][once], pa.string())


def _read_texts(path: str, places: np.ndarray) -> list[pa.Array]:
    """Read first texts, second texts and ids. `places` are as in `_hashes`."""
    distinct, inverse = np.unique(places, return_inverse=True)
    starts = (distinct >> np.uint64(16)).astype(np.int64)
    ends = starts + (distinct & np.uint64(0xFFFF)).astype(np.int64)
    cuts = np.flatnonzero(starts[1:] - ends[:-1] > _GAP) + 1

    def read(at: np.ndarray) -> list[str]:
        begin = int(starts[at[0]])
        data = storage.read_bytes(path, begin, int(ends[at[-1]]))
        return [data[starts[i] - begin : ends[i] - begin].decode() for i in at]

    lines = chain.from_iterable(storage.several(read, np.split(np.arange(len(starts)), cuts)))
    columns = zip(*(line.split("\n", 2) for line in lines), strict=True)
    return [pa.array(column, pa.string()).take(pa.array(inverse)) for column in columns]
