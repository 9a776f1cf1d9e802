"""Repeated phrases in a translation, a sign that the translation model ran into a loop."""

import numpy as np
import pyarrow.compute as pc

from paraloom.models.languages import is_unspaced
from paraloom.models.scorers.base import scorer
from paraloom.models.text.tokens import PairText

_LONGEST = 50  # tokens of a phrase
_LEAST = (3, 6)  # minimum repeated tokens; 6 in languages without spaces, where letters are tokens


@scorer(
    meaning="share of the translation's tokens that repeat the phrase just before them",
    unit="share of tokens",
    higher_is_better=False,
)
def repetition(pairs: PairText) -> np.ndarray:
    """Return the share of the translation's tokens that repeat the phrase just before them: float32
    [n].

    Values are in [0, 1). A translation without tokens has the value 0. A phrase has 1 to 50
    tokens, not only punctuation. The repeats of a phrase count if together they have at least 3
    tokens, or 6 in languages without spaces. In "very very", the only repeat has 1 token and does
    not count.
    """
    side, least = pairs.translation, _LEAST[is_unspaced(pairs.language)]
    ids, rows = side.ids, side.rows
    word = pc.match_substring_regex(pairs.vocabulary, r"[\p{L}\p{N}]")
    words = np.append(0, np.cumsum(word.to_numpy(zero_copy_only=False)[ids]))
    # Number of repeats that begin at a token, minus the number of repeats that end before it.
    depth = np.zeros(len(ids) + 1, np.int64)
    for size in range(1, min(_LONGEST, int(side.lengths.max(initial=0)) // 2) + 1):
        at = np.flatnonzero((ids[size:] == ids[:-size]) & (rows[size:] == rows[:-size])) + size
        # Find runs of adjacent tokens in `at`. The first token of a row is never in `at`.
        starts = np.flatnonzero(np.diff(at, prepend=-1) > 1)
        first, lengths = at[starts], np.diff(starts, append=len(at))
        repeated = (lengths >= max(size, least)) & (words[first + lengths] > words[first])
        np.add.at(depth, first[repeated], 1)
        np.add.at(depth, (first + lengths)[repeated], -1)
    repeats = np.bincount(rows, np.cumsum(depth[:-1]) > 0, minlength=len(pairs))
    return np.asarray(repeats / np.maximum(side.lengths, 1), np.float32)
