"""How much of the wording has to change to get from one side to the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

from models.text.tokens import PairText, TokenIds

_SURROGATES = range(0xD800, 0xE000)  # code points that are no characters
_CHARACTERS = 0x110000 - len(_SURROGATES)


def edit_distance(pairs: PairText) -> np.ndarray:
    """Levenshtein distance in tokens over the tokens of the longer side: float32 [n] in [0, 1].

    Insertions, deletions and substitutions cost 1. 0 where both sides are empty.
    """
    if len(pairs.vocabulary) > _CHARACTERS:
        raise ValueError(f"more than {_CHARACTERS:,} distinct tokens: score fewer rows at once")
    distance = cpdist(
        _strings(pairs.reference), _strings(pairs.translation), scorer=Levenshtein.distance
    )
    longer = np.maximum(pairs.reference.lengths, pairs.translation.lengths)
    return (distance / np.maximum(longer, 1)).astype(np.float32)


def _strings(tokens: TokenIds) -> list[str]:
    """A string a row in which each token is one character: what the C++ library is fastest at."""
    points = tokens.ids + np.where(tokens.ids < _SURROGATES.start, 0, len(_SURROGATES))
    text = points.astype("<u4").tobytes().decode("utf-32-le")
    return [text[start:end] for start, end in pairwise(tokens.offsets.tolist())]
