"""Marks the words that two texts do not share, in HTML."""

import re

from markupsafe import Markup, escape
from rapidfuzz.distance import LCSseq

from paraloom.models.languages import ENGLISH, is_unspaced

_WORD = re.compile(r"\w+|[^\w\s]")
_CHARACTER = re.compile(r"[A-Za-z0-9]+|\S")
_MOST = 10**8
"""The product of the words of both sides up to which they are aligned, in a second or so."""


def mark_differences(first: str, second: str, language: str = ENGLISH) -> tuple[Markup, Markup]:
    """Both texts as HTML, with <mark> around words that the other text does not have.

    The words that a longest common subsequence has are shared; in very long texts, nothing is
    marked. The comparison ignores case. It is by characters in languages that are written without
    spaces.

    >>> for html in mark_differences("A dog runs.", "a big dog runs."):
    ...     print(html)
    A dog runs.
    a <mark>big</mark> dog runs.
    """
    token = _CHARACTER if is_unspaced(language) else _WORD
    spans = [[match.span() for match in token.finditer(text)] for text in (first, second)]
    words = [
        [text[start:end].lower() for start, end in of]
        for text, of in zip((first, second), spans, strict=True)
    ]
    if len(words[0]) * len(words[1]) > _MOST:
        return escape(first), escape(second)
    changed = [code for code in LCSseq.opcodes(*words) if code.tag != "equal"]
    return (
        _mark(first, spans[0], [(code.src_start, code.src_end) for code in changed]),
        _mark(second, spans[1], [(code.dest_start, code.dest_end) for code in changed]),
    )


def _mark(text: str, spans: list[tuple[int, int]], ranges: list[tuple[int, int]]) -> Markup:
    """The text with the tokens of each range (first, one after the last) marked."""
    html, done = Markup(""), 0
    for first, last in ranges:
        if first < last:
            start, end = spans[first][0], spans[last - 1][1]
            html += escape(text[done:start]) + Markup("<mark>{}</mark>").format(text[start:end])
            done = end
    return html + escape(text[done:])
