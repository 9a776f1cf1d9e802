"""Edit distance and length ratio of the two sides, in tokens."""

from itertools import pairwise

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from paraloom.models.scorers.base import scorer
from paraloom.models.text.tokens import PairText, TokenIds

_SURROGATES = range(0xD800, 0xE000)  # these code points are not characters


@scorer(meaning="tokens of the shorter side, divided by tokens of the longer side", unit="ratio")
def length_ratio(pairs: PairText) -> np.ndarray:
    """Return the tokens of the shorter side, divided by the tokens of the longer side: float32 [n]
    in [0, 1]. The value is 1 if both sides are empty."""
    lengths = pairs.reference.lengths, pairs.translation.lengths
    longer = np.maximum(*lengths)
    ratio = np.minimum(*lengths) / np.maximum(longer, 1)
    return np.where(longer > 0, ratio, 1.0).astype(np.float32)


@scorer(
    meaning="Levenshtein distance in tokens, divided by the tokens of the longer side",
    unit="share of tokens",
    higher_is_better=False,
)
def edit_distance(pairs: PairText) -> np.ndarray:
    """Return the Levenshtein distance in tokens, divided by the tokens of the longer side: float32
    [n] in [0, 1]. The value is 0 if both sides are empty."""
    sides = map(_strings, (pairs.reference, pairs.translation))
    distance = cpdist(*sides, scorer=Levenshtein.distance)
    longer = np.maximum(pairs.reference.lengths, pairs.translation.lengths)
    return np.asarray(distance / np.maximum(longer, 1), np.float32)


def _strings(tokens: TokenIds) -> list[str]:
    """Encode each row as a string with one character per token, for speed."""
    points = tokens.ids + np.where(tokens.ids < _SURROGATES.start, 0, len(_SURROGATES))
    text = points.astype("<u4").tobytes().decode("utf-32-le")
    return [text[start:end] for start, end in pairwise(tokens.offsets.tolist())]
