"""Mining of similar sentences by the ratio margin of Artetxe and Schwenk (2019).

The ratio margin of two sentences is their cosine, divided by the mean cosine of both sentences with
their nearest neighbours.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraloom.models.embeddings.applications.hard_negatives import Neighbours

_BLOCK = 4096  # rows per block


class Mined(NamedTuple):
    """Pairs of rows, ordered by descending margin."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]  # greater than the first row
    margin: NDArray[np.float32]
    cosine: NDArray[np.float32]


def write_texts(path: Path, blocks: Iterable[pa.StringArray]) -> pa.LargeStringArray:
    """Write texts to a file and return them memory-mapped. A text needs 8 bytes of memory."""
    sizes = [np.zeros(1, np.int64)]
    with path.open("wb") as stream:
        for block in blocks:
            sizes.append(pc.binary_length(block).to_numpy(zero_copy_only=False))
            stream.write(b"".join(block.cast(pa.binary()).to_pylist()))
    ends = np.cumsum(np.concatenate(sizes), dtype=np.int64)
    data = pa.memory_map(str(path)).read_buffer() if ends[-1] else pa.py_buffer(b"")
    return pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), data)


def mine(
    vectors: NDArray[np.float16],
    index: Neighbours,
    work: Path,
    *,
    k: int,
    least: float,
    tell: Callable[[int], Any] = lambda rows: None,
) -> Mined:
    """Find the pairs whose margin is at least `least`. A pair is a row of the unit vectors [n, dim]
    and one of its `k` nearest neighbours. `tell` receives the number of finished rows."""
    n, k = len(vectors), min(k, len(vectors) - 1)
    files, means = (work / "neighbours", work / "cosines"), np.zeros(n, np.float32)
    # On a full disk, a stream raises an error. A memory-mapped file would kill the process.
    with files[0].open("wb") as near_stream, files[1].open("wb") as cosine_stream:
        for at in range(0, n, _BLOCK):
            own = np.arange(at, min(at + _BLOCK, n))
            found, scores = index.nearest(vectors[own].astype(np.float32))
            missing = (found < 0) | (found == own[:, None])
            order = np.argsort(missing, axis=1, kind="stable")[:, :k]
            found = np.take_along_axis(np.where(missing, -1, found), order, 1)
            scores = np.take_along_axis(np.where(missing, 0, scores), order, 1)
            near_stream.write(found.astype(np.int64).tobytes())
            cosine_stream.write(scores.astype(np.float32).tobytes())
            means[own] = scores.sum(axis=1) / np.maximum((found >= 0).sum(axis=1), 1)
            tell(len(own) + at)
    near = np.memmap(files[0], np.int64, "r", shape=(n, k))
    cosines = np.memmap(files[1], np.float32, "r", shape=(n, k))
    parts = [_pairs(at, near, cosines, means, least) for at in range(0, n, _BLOCK)]
    columns: Any = map(np.concatenate, zip(*parts, strict=True))
    pairs = Mined(*columns)
    order = np.lexsort((pairs.second, pairs.first, -pairs.margin))
    columns = (column[order] for column in pairs)
    return Mined(*columns)


def _pairs(
    at: int,
    near: NDArray[np.int64],
    cosines: NDArray[np.float32],
    means: NDArray[np.float32],
    least: float,
) -> Mined:
    """Return the pairs that a block of rows found. If both rows of a pair found each other, only
    the block of the first row returns the pair."""
    theirs, cosine = near[at : at + _BLOCK], cosines[at : at + _BLOCK]
    own = np.arange(at, at + len(theirs))[:, None]
    mutual = (near[theirs] == own[:, :, None]).any(axis=2)
    margin = np.zeros_like(cosine)
    sides = means[own] + means[theirs]
    np.divide(2 * cosine, sides, out=margin, where=(cosine > 0) & (sides > 0))
    found = (theirs >= 0) & (margin > 0) & (margin >= least)
    row, rank = np.nonzero(found & ((own < theirs) | ~mutual))
    mine, other = own[row, 0], theirs[row, rank]
    first, second = np.minimum(mine, other), np.maximum(mine, other)
    return Mined(first, second, margin[row, rank], cosine[row, rank])
