"""Share of common trigrams (Wieting, Mallinson & Gimpel 2017; ParaNMT 2018)."""

import numpy as np

from paraloom.models.scorers.tokens.ngrams import shared_ngrams
from paraloom.models.text.tokens import PairText


def trigram_overlap(pairs: PairText) -> np.ndarray:
    """Shared trigrams (multiset), divided by those of the side with fewer: float32 [n] in [0, 1].

    0 where a side has fewer than 3 tokens.
    """
    fewer = np.minimum(pairs.reference.lengths, pairs.translation.lengths) - 2
    return np.asarray(shared_ngrams(pairs, 3) / np.maximum(fewer, 1), np.float32)
