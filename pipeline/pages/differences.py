"""Marks the words that two texts do not share, in HTML."""

import re

from markupsafe import Markup, escape
from rapidfuzz.distance import LCSseq

from paraloom.models.languages import ENGLISH, is_unspaced

_WORD = re.compile(r"(\w+|[^\w\s])")
_CHARACTER = re.compile(r"([A-Za-z0-9]+|\S)")
_MARK, _PLAIN = Markup("<mark>{}</mark>"), Markup("{}")


def mark_differences(first: str, second: str, language: str = ENGLISH) -> tuple[Markup, Markup]:
    """Both texts as HTML, with <mark> around the words outside a longest common subsequence.

    Case is ignored. Languages without spaces are compared by characters.

    >>> for html in mark_differences("A dog runs.", "a big dog runs."):
    ...     print(html)
    A dog runs.
    a <mark>big</mark> dog runs.
    """
    token = _CHARACTER if is_unspaced(language) else _WORD
    parts = [token.split(text) for text in (first, second)]  # words are at odd places
    words = [[part.lower() for part in of[1::2]] for of in parts]
    html, done = [escape(of[0]) for of in parts], [0, 0]
    for block in LCSseq.opcodes(*words).as_matching_blocks():  # the last one is empty
        for side, start in enumerate((block.a, block.b)):
            end = start + block.size
            for tag, low, high in ((_MARK, done[side], start), (_PLAIN, start, end)):
                if low < high:
                    html[side] += tag.format("".join(parts[side][2 * low + 1 : 2 * high]))
                    html[side] += parts[side][2 * high]
            done[side] = end
    return html[0], html[1]
