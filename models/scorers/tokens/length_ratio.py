"""Ratio of the two sides' lengths, the classic filter for bitext."""

import numpy as np

from paraloom.models.text.tokens import PairText


def length_ratio(pairs: PairText) -> np.ndarray:
    """Tokens of the shorter side, divided by those of the longer: float32 [n] in [0, 1].

    1 where both sides are empty.
    """
    lengths = pairs.reference.lengths, pairs.translation.lengths
    longer = np.maximum(*lengths)
    ratio = np.minimum(*lengths) / np.maximum(longer, 1)
    return np.where(longer > 0, ratio, 1.0).astype(np.float32)
