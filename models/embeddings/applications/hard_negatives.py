"""The search for nearest sentences with faiss, and bounds on hard negatives."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraloom.models.embeddings.comparison import Embed, unit
from paraloom.models.printing import nothing_printed

_EXACT = 200_000  # maximum number of vectors for exact search
_NEIGHBOURS = 64  # number of neighbours found for a query
_CELLS, _PROBED, _SAMPLE = 2, 16, 40  # 2 √n cells, 16 searched cells, 40 training vectors per cell
_SHORT = 64  # number of principal components in the index of a large corpus
_AT_ONCE = 1024  # queries per batch

Matrix = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds on the cosine of an anchor and its negative, named as in sentence-transformers."""

    min_score: float = 0.3
    max_score: float = 0.6
    relative_margin: float = 0.1
    """With 0.1, the cosine must be at least 10% below the anchor's cosine with its paraphrase."""

    def hold(self, scores: Matrix, positive: Matrix) -> NDArray[np.bool_]:
        """Return whether the negatives' cosines `scores` are within the bounds, bool [n, k].
        `positive` has the cosines of the anchors with their paraphrases, [n]."""
        most = np.minimum(self.max_score, positive - self.relative_margin * np.abs(positive))
        return np.asarray((scores >= self.min_score) & (scores <= most[:, None]))


def unit_vectors(embed: Embed, text: pa.Array) -> Matrix:
    """Return the vectors of n sentences, scaled to length 1, [n, dim]. Zero vectors stay zero."""
    return unit(np.asarray(embed(text), np.float32))


def write_vectors(path: Path, embed: Embed, blocks: Iterable[pa.Array]) -> NDArray[np.float16]:
    """Write the unit vectors of all sentences to a file, or complete an unfinished file. Return the
    vectors memory-mapped, float16 [n, dim]."""
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
    """An index of n unit vectors. Search is exact for at most 200,000 vectors. A larger index is
    approximate, and needs 72 bytes per vector, in memory or in `file`."""

    def __init__(self, vectors: NDArray[np.float16], seed: int, file: Path | None = None) -> None:
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
            if file:
                lists = faiss.OnDiskInvertedLists(cells, inverted.code_size, str(file))
                inverted.replace_invlists(lists)
                self._lists = lists  # faiss does not keep a reference
        with nothing_printed():  # faiss prints a message whenever the file grows
            for start in range(0, n, _EXACT):
                self._index.add(vectors[start : start + _EXACT].astype(np.float32))

    def nearest(self, queries: Matrix) -> tuple[NDArray[np.int64], Matrix]:
        """Return the indices and cosines of each query's k nearest vectors, both [queries, k], the
        nearest first. k is at most 64. If fewer than k were found, the remaining entries are -1."""
        parts = [queries[at : at + _AT_ONCE] for at in range(0, len(queries), _AT_ONCE)]
        rows, scores = zip(*map(self._nearest, parts), strict=True)
        return np.concatenate(rows), np.concatenate(scores)

    def _nearest(self, queries: Matrix) -> tuple[NDArray[np.int64], Matrix]:
        _, found = self._index.search(queries, min(_NEIGHBOURS, len(self.vectors)))
        cosines = np.einsum("nd,nkd->nk", queries, self.vectors[found], dtype=np.float32)
        cosines[found < 0] = -1
        order = np.argsort(-cosines, axis=1, kind="stable")
        return np.take_along_axis(found, order, 1), np.take_along_axis(cosines, order, 1)
