"""Cosine of mean word vectors: the first filter of ParaNMT (Wieting & Gimpel 2018)."""

import numpy as np

from paraloom.models.scorers.base import Resource, scorer
from paraloom.models.text.tokens import PairText, TokenIds
from paraloom.models.text.vectors import WordVectors, load_vectors

_ROWS = 2048  # rows per block, which fits into the cache


PARAGRAM = Resource(
    name="paragram",
    open=load_vectors,
    remedy="word vectors: set score.paragram to a file of vectors, or score.phrases to phrase "
    "pairs for training",
)


@scorer(
    meaning="cosine of the mean PARAGRAM word vectors of the two sides",
    unit="cosine",
    range=(-1.0, 1.0),
    resource=PARAGRAM,
)
def paragram_similarity(pairs: PairText, paragram: WordVectors) -> np.ndarray:
    """Return the cosine of both sides' mean word vectors: float32 [n] in [-1, 1]. Unknown words
    have the vector that `WordVectors.at` returns. The value is 0 if a side has no known word or a
    mean of zero."""
    rows = paragram.rows(pairs.vocabulary)
    vectors, known = paragram.at(rows), rows >= 0
    cosine = np.zeros(len(pairs), np.float32)
    for start in range(0, len(pairs), _ROWS):
        r = _sums(pairs.reference, vectors, start)
        t = _sums(pairs.translation, vectors, start)
        # With `rr * tt` in float64, the cosine of equal sums is exactly 1.
        rt, rr, tt = (
            np.einsum("nd,nd->n", x, y).astype(np.float64) for x, y in ((r, t), (r, r), (t, t))
        )
        norms = np.sqrt(rr * tt)
        cosine[start : start + _ROWS] = np.divide(rt, norms, out=np.zeros_like(rt), where=norms > 0)
    for side in (pairs.reference, pairs.translation):
        cosine[np.bincount(side.rows, known[side.ids], len(pairs)) == 0] = 0.0
    return cosine.clip(-1.0, 1.0)


def _sums(tokens: TokenIds, vectors: np.ndarray, start: int) -> np.ndarray:
    """Sum the word vectors of each row in token order: float32 [rows, d]."""
    from scipy.sparse import csr_array  # a slow import (0.25 s)

    offsets = tokens.offsets[start : start + _ROWS + 1]
    ids = tokens.ids[offsets[0] : offsets[-1]]
    counts = csr_array(
        (np.ones(len(ids), np.float32), ids, offsets - offsets[0]),
        shape=(len(offsets) - 1, len(vectors)),
    )
    sums: np.ndarray = counts @ vectors
    return sums
