"""Cleaning of artefacts in texts: HTML entities, line feeds, decomposed characters."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from html import unescape
from html.entities import html5
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ENTITY = "&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});"
"""The semicolon is required, since `?a=1&copy=2` is part of an address."""
_BREAK = "[\t-\r\x85\u2028\u2029]"


def _character(entity: re.Match[str]) -> str:
    name = entity[0][1:]
    found = unescape(entity[0]) if name[0] == "#" else html5.get(name, "")
    return entity[0] if found in ("", "\ufffd") else found  # \ufffd: U+0000, half a surrogate pair


CLEANERS: dict[str, tuple[str, Callable[[str], str]]] = {
    "entities": (_ENTITY, partial(re.compile(_ENTITY).sub, _character)),
    "whitespace": (_BREAK, partial(re.compile(f" *{_BREAK}(?: |{_BREAK})*").sub, " ")),
    "nfc": ("[\u0300-\U0010ffff]", partial(normalize, "NFC")),  # NFC changes no others
}
"""Kinds of cleaning, in order: a pattern that finds affected texts (in RE2 and in Python), and a
function that cleans a text."""


def clean(text: pa.StringArray, changed: Mapping[str, np.ndarray]) -> pa.StringArray:
    r"""Apply the kinds of cleaning that are keys of `changed`, and mark there which rows changed.

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
