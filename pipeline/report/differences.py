"""Which words two texts do not share, marked in HTML."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from html import escape

_TOKEN = re.compile(r"\w+|[^\w\s]")


def marked(first: str, second: str) -> tuple[str, str]:
    """Both texts as HTML; runs of words that the other does not have are in <mark>.

    Words are the same whatever their case.

    >>> marked("A dog runs.", "a big dog runs.")
    ('A dog runs.', 'a <mark>big</mark> dog runs.')
    """
    sides = [[match.span() for match in _TOKEN.finditer(text)] for text in (first, second)]
    words = [
        [text[a:b].lower() for a, b in spans]
        for text, spans in zip((first, second), sides, strict=True)
    ]
    codes = SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes()
    changed = [code for code in codes if code[0] != "equal"]
    gone, come = [c[1:3] for c in changed], [c[3:5] for c in changed]
    return _mark(first, sides[0], gone), _mark(second, sides[1], come)


def _mark(text: str, spans: list[tuple[int, int]], runs: list[tuple[int, int]]) -> str:
    out, done = [], 0
    for first, last in runs:
        if first == last:
            continue
        start, end = spans[first][0], spans[last - 1][1]
        out += [escape(text[done:start]), f"<mark>{escape(text[start:end])}</mark>"]
        done = end
    return "".join([*out, escape(text[done:])])
