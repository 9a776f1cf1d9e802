"""Check whether both sides are negated, or neither side is."""

import numpy as np
import pyarrow.compute as pc

from paraloom.models.scorers.base import check
from paraloom.models.text.tokens import PairText, TokenIds

NEGATION = r"^(not|no|n't|'t|cannot|never|nothing|nobody|none|neither|nor|without)$"


@check("both sides are negated, or neither is", "negation differs")
def same_negation(pairs: PairText) -> np.ndarray:
    """Return 1 if both sides or neither side has an English word of negation, else 0: float32 [n].
    "not only" and "No 7" are not negations. "don’t" with a curly apostrophe is a negation."""
    negates, no, not_, only, number, curly, t = (
        pc.match_substring_regex(pairs.vocabulary, pattern).to_numpy(zero_copy_only=False)
        for pattern in (NEGATION, "^no$", "^not$", "^only$", r"^\d", "^’$", "^t$")
    )

    def negated(side: TokenIds) -> np.ndarray:
        def followed(by: np.ndarray, first: np.ndarray) -> np.ndarray:
            after = by[side.ids[1:]] & (np.diff(side.rows) == 0)
            return np.asarray(first[side.ids] & np.append(after, False))

        found = negates[side.ids] & ~followed(only, not_) & ~followed(number, no)
        found |= followed(t, curly)
        return np.asarray(np.bincount(side.rows, found, minlength=len(pairs)) > 0, bool)

    return np.asarray(negated(pairs.reference) == negated(pairs.translation), np.float32)
