"""Agreement in the order of shared tokens."""

import numpy as np

from paraloom.models.embeddings.ragged_columns import ranges
from paraloom.models.scorers.base import scorer
from paraloom.models.text.tokens import PairText


@scorer(
    meaning="Kendall's tau of the positions of the shared tokens",
    unit="Kendall's tau",
    range=(-1.0, 1.0),
)
def word_order(pairs: PairText) -> np.ndarray:
    """Return Kendall's tau of the positions of the shared tokens: float32 [n] in [-1, 1].

    The value is 1 if the shared tokens have the same order on both sides, and -1 if they have the
    opposite order. It is also 1 if fewer than two tokens are shared. The k-th occurrence of a token
    on one side is matched with the k-th occurrence on the other side.
    """
    rows, positions = _shared(pairs)
    shared = np.bincount(rows, minlength=len(pairs))
    pairs_of_words = np.maximum(shared * (shared - 1) / 2, 1)
    tau = 1 - 2 * _inversions(rows, positions, len(pairs)) / pairs_of_words
    return tau.astype(np.float32)


def _shared(pairs: PairText) -> tuple[np.ndarray, np.ndarray]:
    """Return each shared token's row and its position in the translation, in reference order."""
    reference, translation = pairs.reference, pairs.translation
    rows = np.concatenate([reference.rows, translation.rows])
    ids = np.concatenate([reference.ids, translation.ids])
    key = rows.astype(np.int64) * len(pairs.vocabulary) + ids
    order = np.argsort(key, kind="stable")
    # Equal tokens of a row are now adjacent. The reference's tokens come first, in text order.
    # If one side has fewer of these tokens, only the first `fewer` tokens of each side match.
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    total = np.diff(starts, append=len(key))
    of_reference = np.add.reduceat(order < len(reference.ids), starts, dtype=np.int64)
    fewer = np.minimum(of_reference, total - of_reference)
    in_translation = order[ranges(starts + of_reference, fewer)] - len(reference.ids)
    partner = np.full(len(reference.ids), -1, np.int64)
    partner[order[ranges(starts, fewer)]] = in_translation
    found = partner >= 0
    rows = reference.rows[found]
    return rows, partner[found] - translation.offsets[rows]


def _inversions(rows: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Count the inversions (a larger value before a smaller value) in each of n rows: int64 [n].
    `rows` is sorted. Each value is compared with each earlier value in its row."""
    inverted = np.zeros(n, np.int64)
    sizes = np.bincount(rows, minlength=n)
    for distance in range(1, int(sizes.max(initial=0))):
        longer = (sizes > distance)[rows]
        rows, values = rows[longer], values[longer]
        later, larger = rows[distance:], values[:-distance] > values[distance:]
        inverted += np.bincount(later[larger & (later == rows[:-distance])], minlength=n)
    return inverted
