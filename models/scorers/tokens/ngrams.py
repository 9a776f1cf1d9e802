"""Overlap of tokens and of trigrams (Wieting, Mallinson & Gimpel 2017; ParaNMT 2018)."""

import numpy as np

from paraloom.models.scorers.base import scorer
from paraloom.models.text.tokens import PairText, TokenIds

_BITS = 63


@scorer(
    meaning="shared token trigrams, divided by the trigrams of the side with fewer trigrams",
    unit="share of trigrams",
)
def trigram_overlap(pairs: PairText) -> np.ndarray:
    """Return the number of shared trigrams, divided by the number of trigrams on the side with
    fewer trigrams: float32 [n] in [0, 1].

    Trigrams are counted with repetitions. The value is 0 if a side has fewer than 3 tokens.
    """
    fewer = np.minimum(pairs.reference.lengths, pairs.translation.lengths) - 2
    return np.asarray(_shared(pairs, 3) / np.maximum(fewer, 1), np.float32)


@scorer(meaning="harmonic mean of precision and recall of the tokens", unit="F1")
def unigram_f1(pairs: PairText) -> np.ndarray:
    """Return the harmonic mean of token precision and recall: float32 [n] in [0, 1]. Tokens are
    counted with repetitions. The value is 1 if both sides are empty."""
    total = pairs.reference.lengths + pairs.translation.lengths
    f1 = 2 * _shared(pairs, 1) / np.maximum(total, 1)
    return np.where(total > 0, f1, 1.0).astype(np.float32)


def _shared(pairs: PairText, n: int) -> np.ndarray:
    return shared_ngrams((pairs.reference, pairs.translation), len(pairs.vocabulary), n)


def shared_ngrams(sides: tuple[TokenIds, TokenIds], words: int, n: int) -> np.ndarray:
    """Return the size of the multiset intersection of both sides' n-grams: int64 [rows]. All token
    ids must be below `words`."""
    count = len(sides[0].lengths)
    tokens = np.concatenate([side.ids for side in sides], dtype=np.int64)
    if len(tokens) < n:
        return np.zeros(count, np.int64)
    # Encode the row, tokens and side of an n-gram as one integer, so that sorting groups equal
    # n-grams. If an integer would exceed 63 bits, first renumber the integers computed so far.
    width = bits = words.bit_length()
    limit = _BITS - count.bit_length() - 1
    key = tokens.copy()
    for i in range(1, n):
        if bits + width > limit:
            key, bits = _renumbered(key)
        key = key[:-1]
        key <<= width
        key |= tokens[i:]
        bits += width
    if bits > limit:
        key, bits = _renumbered(key)
    every = np.arange(count, dtype=np.int64) << (bits + 1)
    rows = np.concatenate([np.repeat(every | i, side.lengths) for i, side in enumerate(sides)])
    key <<= 1
    key |= rows[: len(key)]
    key = key[rows[: len(key)] == rows[n - 1 :]]
    key.sort()

    # In `key`, equal n-grams of a row are adjacent: first the reference's, then the translation's.
    differ = np.append(key[:-1] ^ key[1:], 2)  # 0: same n-gram and side; 1: only the side differs
    last = np.flatnonzero(differ == 1)
    shared = np.bincount(key[last] >> (bits + 1), minlength=count)
    last = last[(differ[last - 1] < 2) & (differ[last + 1] < 2)]  # repeated on both sides
    of_reference = last + 1 - np.searchsorted(key, key[last], side="left")
    of_translation = np.searchsorted(key, key[last] + 1, side="right") - last - 1
    np.add.at(shared, key[last] >> (bits + 1), np.minimum(of_reference, of_translation) - 1)
    return shared


def _renumbered(key: np.ndarray) -> tuple[np.ndarray, int]:
    distinct, dense = np.unique(key, return_inverse=True)
    return dense, len(distinct).bit_length()
