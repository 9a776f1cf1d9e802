"""The words that two texts do not share."""

import re
import time

import pytest

from paraloom.pipeline.report.differences import mark_differences


def marked(html: str) -> list[str]:
    return re.findall("<mark>(.*?)</mark>", html)


def test_words_are_marked() -> None:
    first, second = mark_differences("A dog <b> runs fast.", "a big dog runs.")
    assert first == "A dog <mark>&lt;b&gt;</mark> runs <mark>fast</mark>."
    assert second == "a <mark>big</mark> dog runs."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a b " * 5000, "b a " * 5000),
        ("a " * 10_000, "b " * 10_000),
        ("a b c d e " * 10_000, "x a y b " * 10_000),
    ],
)
def test_a_crafted_pair_takes_no_longer_than_others(first: str, second: str) -> None:
    began = time.process_time()
    html = mark_differences(first, second)
    assert time.process_time() - began < 5
    for text, of in zip((first, second), html, strict=True):
        assert re.sub("</?mark>", "", of) == text


def test_very_long_texts_share_the_words_that_both_have() -> None:
    first, second = mark_differences("a b c " * 6000, "c a x " * 6000)
    assert set(marked(first)) == {"b"} and set(marked(second)) == {"x"}
