"""Cleaning of texts (entities, line breaks, Unicode form), and search for control characters."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from html import unescape
from html.entities import html5
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CONTROL = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"
"""Control characters and line separators. Texts of pairs must not contain these characters, because
some tools read them as the end of a line or column."""
_ENTITY = "&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});"
"""The semicolon is required, because `&copy` in an address (`?a=1&copy=2`) is not an entity."""
_BREAK = "[\t-\r\x85\u2028\u2029]"


def _character(entity: re.Match[str]) -> str:
    name = entity[0][1:]
    found = unescape(entity[0]) if name[0] == "#" else html5.get(name, "")
    return entity[0] if found in ("", "\ufffd") else found  # \ufffd: no such character


CLEANERS: dict[str, tuple[str, Callable[[str], str]]] = {
    "entities": (_ENTITY, partial(re.compile(_ENTITY).sub, _character)),
    "whitespace": (_BREAK, partial(re.compile(f" *{_BREAK}(?: |{_BREAK})*").sub, " ")),
    "nfc": ("[\u0300-\U0010ffff]", partial(normalize, "NFC")),  # NFC does not change other texts
}
"""Kinds of cleaning in the order of their application. Each kind has a pattern (RE2 and Python)
that matches the texts to clean, and a function that cleans a text."""


def clean(text: pa.StringArray, changed: Mapping[str, np.ndarray]) -> pa.StringArray:
    r"""Apply the kinds of cleaning that are keys of `changed`.

    The array `changed[kind]`, bool [n], becomes True for rows that this kind of cleaning changes.

    >>> changed = {kind: np.zeros(1, bool) for kind in CLEANERS}
    >>> clean(pa.array(["Jan &amp; \n Eva: &amp;quot;"]), changed)[0].as_py(), changed["nfc"][0]
    ('Jan & Eva: &quot;', np.False_)
    """
    for kind in changed:
        pattern, cleaned = CLEANERS[kind]
        some = pc.match_substring_regex(text, pattern).fill_null(False)
        before = text.filter(some)
        after = pa.array([*map(cleaned, before.to_pylist())], pa.string())
        differ = pc.not_equal(before, after).to_numpy(zero_copy_only=False)
        changed[kind][np.flatnonzero(some)[differ]] = True
        text = pc.replace_with_mask(text, some, after)
    return text


def find_control(text: str) -> str | None:
    r"""Describe the first control character or line separator in a text, or return None.

    >>> find_control("a\tb"), find_control("a\u2028b"), find_control("a b")
    ('control character U+0009', 'line separator U+2028', None)
    """
    if found := re.search(CONTROL, text):
        kind = "line separator" if found[0] > "\x9f" else "control character"
        return f"{kind} U+{ord(found[0]):04X}"
    return None
