"""What the report shows: its stages, counts against plain ones, axes, marks, ticks."""

import re
import time
from html import escape, unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.transforms.shares import Deciles
from paraloom.pipeline.pages.differences import mark_differences
from paraloom.pipeline.pages.plots import shades, ticks
from paraloom.pipeline.pages.report_data import BINS, CELLS, axes, axis, density, histogram
from tests.pipeline.pages.made_run import MadeRun

FULL = Deciles(rows=[1] * 10, lowest=[float(k) for k in range(10)], highest=[9.0] * 10)


def test_every_pair_is_counted_where_it_lies(made_run: MadeRun) -> None:
    pairs = made_run.pairs.select(["trigram_overlap", "translation_score"])
    corpus = pairs.slice(0, 50)
    found = density(pairs, corpus, ("trigram_overlap", "translation_score"))
    x, y = (pairs[name].to_numpy().astype(float) for name in pairs.column_names)
    columns = np.clip(np.searchsorted(found.x_edges, x, "right") - 1, 0, CELLS - 1)
    lines = np.clip(np.searchsorted(found.y_edges, y, "right") - 1, 0, CELLS - 1)
    plain = np.zeros((CELLS, CELLS), int)
    for column, line in zip(columns, lines, strict=True):
        plain[column, line] += 1
    assert (found.pairs == plain).all() and found.corpus.sum() == 50
    shaded = [tuple(cell) for _, cells in shades(found, found.pairs) for cell in cells]
    assert sorted(shaded) == sorted(map(tuple, np.argwhere(plain > 0).tolist()))
    assert not density(pairs, pairs.slice(0, 0), ("trigram_overlap",) * 2).corpus.any()

    shown = histogram(y, y[:0], FULL)
    assert y.min() < shown.edges[0]  # a long tail is cut
    assert shown.pairs[0] == pytest.approx(np.mean(y < shown.edges[1]))
    assert shown.pairs.sum() == pytest.approx(1) and not shown.corpus.any()
    assert shown.bounds == FULL.lowest[1:]


@pytest.mark.parametrize("values", [[1.0], [1.0] * 20, [0.0, *[1.0] * 19], list(range(20))])
def test_any_values_have_an_axis(values: list[float]) -> None:
    edges = axis(np.array(values, np.float32), BINS)
    assert len(edges) == BINS + 1 and (np.diff(edges) > 0).all()
    assert edges[0] <= np.median(values) <= edges[-1]


@given(st.text(max_size=40), st.text(max_size=40))
def test_marked_texts_are_the_texts(first: str, second: str) -> None:
    for text, html in zip((first, second), mark_differences(first, second), strict=True):
        assert unescape(re.sub("</?mark>", "", html)) == text
    if first.lower() == second.lower():
        assert "<mark>" not in "".join(mark_differences(first, second))


def test_marks_are_on_what_differs() -> None:
    reference, translation = mark_differences("A man < a dog.", "Two men < a dog!")
    assert reference == "<mark>A man</mark> &lt; a dog<mark>.</mark>"
    assert translation == "<mark>Two men</mark> &lt; a dog<mark>!</mark>"
    assert mark_differences("A DOG", "a dog") == ("A DOG", "a dog")
    _, by_characters = mark_differences("猫が走る。", "犬が走る。", "ja")
    assert by_characters == "<mark>犬</mark>が走る。"


def test_a_crafted_pair_takes_no_longer_than_others() -> None:
    began = time.process_time()
    for first, second in (("a b " * 5000, "b a " * 5000), ("a b < " * 10_000, "x a < " * 10_000)):
        html = mark_differences(first, second)
        assert [re.sub("</?mark>", "", of) for of in html] == [escape(first), escape(second)]
    assert time.process_time() - began < 5


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_within(low: float, width: int) -> None:
    found = ticks(low, low + width)
    slack = 1e-6 * max(abs(low), width)
    assert 1 <= len(found) <= 6
    assert all(low - slack <= value <= low + width + slack for value in found)
    assert found == sorted(set(found))


def test_the_density_is_of_difference_and_meaning_and_of_the_scores_that_select() -> None:
    names = ["translation_score", "trigram_overlap", "content_overlap", "sentence_similarity"]
    assert axes(names, []) == ("content_overlap", "sentence_similarity")
    assert axes(names[:2], []) == ("trigram_overlap", "translation_score")
    assert axes(names, names[:2]) == ("trigram_overlap", "translation_score")
    assert axes([*names, "own"], ["own"]) == ("content_overlap", "own")
    known = axes([*names, "own"], ["own", "sentence_similarity"])
    assert known == ("content_overlap", "sentence_similarity")
    assert axes(["own"], []) is None
