"""Sentences of a large corpus that are near others, found with faiss: hard negatives.

Vectors are kept on disk as float16. The bounds have the names of sentence-transformers'
`mine_hard_negatives`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraloom.models.embeddings.comparison import Embed, unit

_EXACT = 200_000  # vectors that are compared one by one
_NEIGHBOURS = 64  # of a query, among which its negative is
_CELLS, _PROBED, _SAMPLE = 2, 16, 40  # cells × √n, cells that are searched, sample of each cell
_SHORT = 64  # components that the index of a large corpus keeps
_AT_ONCE = 1024  # queries

Matrix = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Which cosines with an anchor a negative may have."""

    min_score: float = 0.3
    max_score: float = 0.6
    relative_margin: float = 0.1  # below the positive's cosine by this share of it

    def hold(self, scores: Matrix, positive: Matrix) -> NDArray[np.bool_]:
        """Whether the scores [n, k] are within the bounds, given the positives' scores [n]."""
        most = np.minimum(self.max_score, positive - self.relative_margin * np.abs(positive))
        return np.asarray((scores >= self.min_score) & (scores <= most[:, None]))


def unit_vectors(embed: Embed, text: pa.Array) -> Matrix:
    """The vectors of n sentences, scaled to length 1: [n, dim]; zeros stay."""
    return unit(np.asarray(embed(text), np.float32))


def write_vectors(path: Path, embed: Embed, blocks: Iterable[pa.Array]) -> NDArray[np.float16]:
    """The unit vectors of all sentences, memory-mapped: float16 [n, dim].

    Blocks that an earlier call has written into the file are not encoded again.
    """
    width = 2 * embed(pa.array([""])).shape[1]  # bytes
    with path.open("ab") as stream:
        written = stream.tell() // width
        end = 0
        for block in blocks:
            end += len(block)
            if end <= written:
                continue
            stream.truncate((end - len(block)) * width)
            stream.write(unit_vectors(embed, block).astype(np.float16).data)
            stream.flush()
            os.fsync(stream.fileno())
    return np.memmap(path, np.float16, "r").reshape(end, -1)


class Neighbours:
    """Searches n unit vectors: exactly if they are few, else in an inverted index (`IVF`) of their
    principal components in 8 bits each, which is trained on a sample and takes 72 bytes a vector.
    """

    def __init__(self, vectors: NDArray[np.float16], seed: int) -> None:
        import faiss

        n, dim = vectors.shape
        self.vectors = vectors
        if n <= _EXACT:
            self._index: Any = faiss.IndexFlatIP(dim)
        else:
            cells = int(_CELLS * n**0.5)
            kind = f"PCA{min(dim, _SHORT)},IVF{cells},SQ8"
            self._index = faiss.index_factory(dim, kind, faiss.METRIC_INNER_PRODUCT)
            inverted = faiss.extract_index_ivf(self._index)
            inverted.nprobe, inverted.cp.seed = _PROBED, seed
            chosen = np.random.default_rng(seed).choice(n, min(n, _SAMPLE * cells), replace=False)
            self._index.train(vectors[np.sort(chosen)].astype(np.float32))
        for start in range(0, n, _EXACT):
            self._index.add(vectors[start : start + _EXACT].astype(np.float32))

    def nearest(self, queries: Matrix) -> tuple[NDArray[np.int64], Matrix]:
        """Rows of the nearest vectors, nearest first, and their cosines: [queries, k].

        A row is -1, its cosine -1, where the index finds no more.
        """
        parts = [queries[at : at + _AT_ONCE] for at in range(0, len(queries), _AT_ONCE)]
        rows, scores = zip(*map(self._nearest, parts), strict=True)
        return np.concatenate(rows), np.concatenate(scores)

    def _nearest(self, queries: Matrix) -> tuple[NDArray[np.int64], Matrix]:
        _, found = self._index.search(queries, min(_NEIGHBOURS, len(self.vectors)))
        cosines = np.einsum("nd,nkd->nk", queries, self.vectors[found], dtype=np.float32)
        cosines[found < 0] = -1
        order = np.argsort(-cosines, axis=1, kind="stable")
        return np.take_along_axis(found, order, 1), np.take_along_axis(cosines, order, 1)
