"""Cleaning of texts against Python's own ways, one text after the other."""

import html
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.models.text.cleaning import CLEANERS, clean


def cleaned(texts: list[str | None], *kinds: str) -> tuple[list[str | None], dict[str, list[int]]]:
    """The texts, and the rows that each kind changed."""
    changed = {kind: np.zeros(len(texts), bool) for kind in kinds or CLEANERS}
    found = clean(pa.array(texts, pa.string()), changed)
    found.validate(full=True)
    return found.to_pylist(), {k: np.flatnonzero(rows).tolist() for k, rows in changed.items()}


ENTITIES = {
    "Jan &amp; Eva": "Jan & Eva",
    "it&#39;s &#x27;so&#X27;": "it's 'so'",
    "&quot;&lt;b&gt;&quot;": '"<b>"',
    "&amp;quot;": "&quot;",  # once
    "&amp;amp;amp;": "&amp;amp;",
    "&eacute;&nbsp;&hellip;&rarr;&NotEqualTilde;": "é\xa0…→≂̸",
    "&#150;&#8211;": "––",  # as Windows means it, and Unicode
    "&#10;": "\n",
    "&#129;": "\x81",
    # What is no entity stays.
    "AT&T, R&D; a && b; &;": "AT&T, R&D; a && b; &;",
    "/?a=1&copy=2&lt=3": "/?a=1&copy=2&lt=3",
    "&notit; &foo; &AMP": "&notit; &foo; &AMP",
    "&#0; &#1; &#55357;&#56842; &#xFFFFFF; &#12345678;": None,
    "& amp; &# 39;": None,
}


@pytest.mark.parametrize(("text", "expected"), ENTITIES.items())
def test_entities(text: str, expected: str | None) -> None:
    expected = text if expected is None else expected
    assert cleaned([text], "entities") == ([expected], {"entities": [0] * (expected != text)})


def test_every_number_is_read_as_html_says() -> None:
    """But for what HTML leaves out, which stays as it is."""
    for code in (*range(1, 0x250), 0x2028, 0xFFFF, 0x1F600, 0x10FFFF):
        texts: list[str | None] = [f"&#{code};", f"&#x{code:x};", f"&#X{code:06X};"]
        found = html.unescape(f"&#{code};")
        assert cleaned(texts, "entities")[0] == [found or text for text in texts]


BREAKS = {
    "a\nb": "a b",
    "a\r\nb": "a b",
    "a \t\n  b": "a b",
    "a\u2028b\u2029\x85c\x0b\x0cd": "a b c d",
    "\n": " ",
    "a  b": "a  b",  # a space is no break
    "a\u00a0b\u3000c": "a\u00a0b\u3000c",
    "a\x1cb\x00": "a\x1cb\x00",  # a control character is still one
}


@pytest.mark.parametrize(("text", "expected"), BREAKS.items())
def test_breaks(text: str, expected: str) -> None:
    assert cleaned([text], "whitespace") == ([expected], {"whitespace": [0] * (expected != text)})


def test_every_character_becomes_what_unicode_says() -> None:
    surrogates = range(0xD800, 0xE000)
    texts: list[str | None] = [chr(c) for c in range(0x30000) if c not in surrogates]
    found, changed = cleaned(texts, "nfc")
    expected = [unicodedata.normalize("NFC", text or "") for text in texts]
    assert found == expected
    assert changed["nfc"] == [n for n, text in enumerate(texts) if text != expected[n]]
    breaks = [c for c in texts if re.fullmatch("[\t-\r\x85\u2028\u2029]", c or "")]
    found, changed = cleaned(texts, "whitespace")
    assert [texts[row] for row in changed["whitespace"]] == breaks


pieces = st.sampled_from(
    [" ", "\n", "\t", "\u2028", "&", "amp;", "#10;", "&lt;", "e", "\u0301", "é", "&#769;", "\x00"]
)


@given(texts=st.lists(st.none() | st.lists(pieces, max_size=9).map("".join), max_size=9))
def test_a_text_is_cleaned_by_itself_and_in_order(texts: list[str | None]) -> None:
    """What an entity becomes is cleaned, too; rows and nulls stay where they are."""
    found, changed = cleaned(texts)
    step = texts
    for kind in CLEANERS:
        before, (step, rows) = step, cleaned(step, kind)
        assert rows == {kind: changed[kind]}
        assert changed[kind] == [n for n, text in enumerate(step) if text != before[n]]
    assert found == step
    assert found == [cleaned([text])[0][0] for text in texts]
    assert [text is None for text in found] == [text is None for text in texts]
    sliced = clean(pa.array(["&lt;", *texts], pa.string())[1:], {})
    assert sliced.to_pylist() == texts
