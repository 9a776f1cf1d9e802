"""Marks the words that two texts do not share, in HTML."""

import re

from markupsafe import Markup, escape
from rapidfuzz.distance import LCSseq

from paraloom.models.languages import ENGLISH, is_unspaced

_WORD = re.compile(r"\w+|[^\w\s]")
_CHARACTER = re.compile(r"[A-Za-z0-9]+|\S")
_MOST = 10**8
"""The product of the words of both sides up to which they are aligned, in a second or so."""

_Spans = list[tuple[int, int]]


def mark_differences(first: str, second: str, language: str = ENGLISH) -> tuple[Markup, Markup]:
    """Both texts as HTML, with <mark> around words that the other text does not have.

    The words that a longest common subsequence has are shared; in very long texts, those that are
    anywhere in the other text. The comparison ignores case. It is by characters in languages that
    are written without spaces.

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
        alone = [_missing(*words), _missing(*reversed(words))]
    else:
        changed = [code for code in LCSseq.opcodes(*words) if code.tag != "equal"]
        alone = [
            [(code.src_start, code.src_end) for code in changed],
            [(code.dest_start, code.dest_end) for code in changed],
        ]
    return _mark(first, spans[0], alone[0]), _mark(second, spans[1], alone[1])


def _missing(words: list[str], others: list[str]) -> _Spans:
    """The words that the other text does not have, each as a range."""
    known = set(others)
    return [(i, i + 1) for i, word in enumerate(words) if word not in known]


def _mark(text: str, spans: _Spans, ranges: _Spans) -> Markup:
    """The text with the tokens of each range (first, one after the last) marked."""
    html, done = Markup(""), 0
    for first, last in ranges:
        if first < last:
            start, end = spans[first][0], spans[last - 1][1]
            html += escape(text[done:start]) + Markup("<mark>{}</mark>").format(text[start:end])
            done = end
    return html + escape(text[done:])
