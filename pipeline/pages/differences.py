"""Marks the words that two texts do not share, in HTML."""

import re
from itertools import groupby

from markupsafe import Markup, escape
from rapidfuzz.distance import LCSseq

from paraloom.models.languages import ENGLISH, is_unspaced

_WORD = re.compile(r"(\w+|[^\w\s])")
_CHARACTER = re.compile(r"([A-Za-z0-9]+|\S)")


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
    shared: tuple[set[int], set[int]] = (set(), set())
    for code in LCSseq.opcodes(*words):
        if code.tag == "equal":
            shared[0].update(range(code.src_start, code.src_end))
            shared[1].update(range(code.dest_start, code.dest_end))
    return _mark(parts[0], shared[0]), _mark(parts[1], shared[1])


def _mark(parts: list[str], shared: set[int]) -> Markup:
    """The text with one mark around each run of words that are not shared."""
    html = Markup(escape(parts[0]))
    marks = [number not in shared for number in range(len(parts) // 2)]
    for marked, run in groupby(range(len(marks)), marks.__getitem__):
        numbers = list(run)
        text = "".join(parts[2 * numbers[0] + 1 : 2 * numbers[-1] + 2])
        html += Markup("<mark>{}</mark>").format(text) if marked else escape(text)
        html += escape(parts[2 * numbers[-1] + 2])
    return html
