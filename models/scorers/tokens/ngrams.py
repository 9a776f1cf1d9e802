"""Counts the n-grams that both sides of a pair have, for all rows at once."""

import numpy as np

from models.text.tokens import PairText, TokenIds

_KEYS = 1 << 62  # keys below this leave one bit for the side


def shared_ngrams(pairs: PairText, n: int) -> np.ndarray:
    """Size of the multiset intersection of both sides' n-grams: int64 [rows]."""
    rows, grams, side = (
        np.concatenate(parts)
        for parts in zip(
            _ngrams(pairs.reference, n, side=0), _ngrams(pairs.translation, n, side=1), strict=True
        )
    )
    # Every n-gram becomes one integer of row, tokens and side, so that one sort groups equal ones.
    # Where the integers would overflow, the values so far are replaced by dense numbers.
    size = len(pairs.vocabulary)
    key = grams[:, 0].astype(np.int64)
    for token in grams.T[1:]:
        key, size = _renumbered(key, size, factor=len(pairs.vocabulary))
        key, size = key * len(pairs.vocabulary) + token, size * len(pairs.vocabulary)
    key, size = _renumbered(key, size, factor=len(pairs))
    key = np.sort(((rows * size + key) << 1) | side)

    gram = key >> 1
    starts = np.flatnonzero(np.diff(gram, prepend=-1))
    if not len(starts):
        return np.zeros(len(pairs), np.int64)
    total = np.diff(starts, append=len(key))
    of_translation = np.add.reduceat(key & 1, starts)
    shared = np.minimum(of_translation, total - of_translation)
    return np.bincount(gram[starts] // size, shared, minlength=len(pairs)).astype(np.int64)


def _ngrams(tokens: TokenIds, n: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, tokens and side of every n-gram: [m], [m, n], [m]."""
    if len(tokens.ids) < n:
        return np.empty(0, np.int64), np.empty((0, n), np.int32), np.empty(0, np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(tokens.ids, n)
    inside = tokens.rows[n - 1 :] == tokens.rows[: len(windows)]
    rows = tokens.rows[: len(windows)][inside].astype(np.int64)
    return rows, windows[inside], np.full(len(rows), side, np.int64)


def _renumbered(key: np.ndarray, size: int, *, factor: int) -> tuple[np.ndarray, int]:
    if size * factor < _KEYS:
        return key, size
    distinct, dense = np.unique(key, return_inverse=True)
    return dense, len(distinct)
