"""Share of common tokens, in any order."""

import numpy as np

from paraloom.models.scorers.tokens.ngrams import shared_ngrams
from paraloom.models.text.tokens import PairText


def unigram_f1(pairs: PairText) -> np.ndarray:
    """Harmonic mean of precision and recall of the tokens (multiset): float32 [n] in [0, 1].

    1 where both sides are empty.
    """
    total = pairs.reference.lengths + pairs.translation.lengths
    f1 = 2 * shared_ngrams(pairs, 1) / np.maximum(total, 1)
    return np.where(total > 0, f1, 1.0).astype(np.float32)
