"""Check whether both sides have the same names."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.scorers.base import check
from paraloom.models.scorers.tokens.content_overlap import content_stem
from paraloom.models.text.tokens import PairText

_SOME = r"[\p{L}\p{N}_],? \p{Lu}\p{L}"  # RE2 pattern of texts that may contain names
_WITHIN = re.compile(r"(?:(?<=\w )|(?<=\w, ))(?![a-z])[^\W\d_]{2,}")  # possible name
_WORD = re.compile(r"[^\W\d_]+")


@check("both sides have the same names", "names differ")
def same_names(pairs: PairText) -> np.ndarray:
    """Return 1 if each name also occurs on the other side, else 0: float32 [n].

    A name is a capitalised word inside a sentence. Its inflection and letter case may differ on the
    other side. Titles have no names. A title is in capitals, or has at least four words of four or
    more letters, all capitalised. In German, all nouns count as names.
    """
    sides = (pairs.reference_text, pairs.translation_text)
    some = pc.or_(*(pc.match_substring_regex(side, _SOME) for side in sides))
    rows = np.flatnonzero(some.to_numpy(zero_copy_only=False))
    same = np.ones(len(pairs), np.float32)
    texts = (side.take(pa.array(rows)).to_pylist() for side in sides)
    for row, one, other in zip(rows.tolist(), *texts, strict=True):
        (names, words), (others, found) = (_words(text, pairs.language) for text in (one, other))
        same[row] = names <= found and others <= words
    return same


def _words(text: str, language: str) -> tuple[set[str], set[str]]:
    words = _WORD.findall(text)
    capitals = [word[0].isupper() for word in words if len(word) > 3]
    titled = text.isupper() or (len(capitals) > 3 and all(capitals))
    names = [] if titled else [name for name in _WITHIN.findall(text) if name[0].isupper()]
    both = [{content_stem(w, language) or w for w in map(str.lower, of)} for of in (names, words)]
    return both[0], both[1]
