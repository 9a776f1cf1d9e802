"""What the report reads: counts against numpy on the whole table, samples, the selected region."""

import re
import time
from html import escape, unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Deciles
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.pipeline.records import SelectSection
from paraloom.pipeline.report import report_data
from paraloom.pipeline.report.differences import mark_differences
from paraloom.pipeline.report.plots import ticks
from paraloom.pipeline.report.report_data import (
    BINS,
    CELLS,
    Array,
    ScoreFigures,
    read_scores,
    regions,
)
from tests.pipeline.report.made_run import MadeRun


@pytest.fixture
def deciles(made_run: MadeRun) -> dict[str, Deciles]:
    deciles = made_run.record["stages"]["bucket"]["deciles"]
    return {score: Deciles.model_validate(summary) for score, summary in deciles.items()}


@pytest.fixture
def scores(made_run: MadeRun, deciles: dict[str, Deciles]) -> ScoreFigures:
    return read_scores(made_run.folder, deciles, with_corpus=True, stage="bucket")


def binned(values: Array, edges: Array) -> Array:
    """numpy's own histogram, what lies beyond the axis in the outermost bins."""
    return np.histogram(np.clip(values.astype(float), edges[0], edges[-1]), edges)[0]


def test_histograms_count_every_pair(made_run: MadeRun, scores: ScoreFigures) -> None:
    for name, histogram in scores.histograms.items():
        values = made_run.pairs[name].to_numpy()
        assert histogram.pairs.sum() == made_run.pairs.num_rows
        # A value on an edge may fall to either side of it.
        moved = np.abs(np.cumsum(histogram.pairs) - np.cumsum(binned(values, histogram.edges)))
        on_edge = [
            np.isclose(values, edge, rtol=0, atol=1e-6).sum() for edge in histogram.edges[1:]
        ]
        assert (moved <= on_edge).all()
        assert histogram.bounds == [
            values[made_run.pairs[schema.decile(name)].to_numpy() == k].min() for k in range(1, 10)
        ]
        assert (histogram.corpus <= histogram.pairs).all()
        corpus = made_run.record["stages"]["select"]["rows_out"]
        assert histogram.corpus.sum() == corpus
        low, high = histogram.edges[0], histogram.edges[-1]
        beyond = (values < np.float32(low)) | (values > np.float32(high))
        assert histogram.beyond == beyond.sum()
    assert scores.histograms["translation_score"].beyond  # a long tail is cut


def test_density_sums_up_to_the_histograms_of_its_scores(
    made_run: MadeRun, scores: ScoreFigures
) -> None:
    density = scores.density
    assert density is not None
    assert (density.x, density.y) == ("trigram_overlap", "translation_score")
    for axis, name, edges in ((1, density.x, density.x_edges), (0, density.y, density.y_edges)):
        assert len(edges) == CELLS + 1
        counts = density.pairs.sum(axis)
        assert counts.sum() == made_run.pairs.num_rows
        values = made_run.pairs[name].to_numpy()
        middle = values[(values > edges[0]) & (values < edges[-1])]
        assert abs(counts[1:-1].sum() - binned(middle, edges)[1:-1].sum()) <= 2


def test_the_correlation_is_that_of_all_pairs(made_run: MadeRun, scores: ScoreFigures) -> None:
    density = scores.density
    assert density is not None and density.correlation is not None
    values = [made_run.pairs[name].to_numpy() for name in (density.x, density.y)]
    clipped = [
        np.clip(of, edges[0], edges[-1])
        for of, edges in zip(values, (density.x_edges, density.y_edges), strict=True)
    ]
    assert density.correlation == pytest.approx(np.corrcoef(clipped)[0, 1], abs=0.02)
    density.pairs[:, 1:] = 0
    assert density.correlation is None


@pytest.mark.parametrize(
    ("chosen", "where"),
    [
        ([8, 9], []),
        ([0, 1, 5], ["translation_score > -1"]),
        (None, ["translation_score_decile in 3..5", "translation_score <= -0.2"]),
        (None, ["reference_tokens >= 5"]),
        ([2], ["translation_score_decile >= 7"]),
    ],
)
def test_the_region_holds_what_the_conditions_hold_for(
    made_run: MadeRun, deciles: dict[str, Deciles], chosen: list[int] | None, where: list[str]
) -> None:
    select = SelectSection(by="translation_score", deciles=chosen, where=where)
    table = made_run.pairs.select(["translation_score", "translation_score_decile"])
    meets = np.ones(table.num_rows, bool)
    if chosen is not None:
        meets &= np.isin(table["translation_score_decile"].to_numpy(), chosen)
    for condition in map(Predicate.parse, where):
        if condition.column in table.column_names:
            meets &= condition.holds(table[condition.column].to_numpy())
    region = regions(select, deciles)
    values = table["translation_score"].to_numpy()
    inside, no = np.ones(table.num_rows, bool), np.zeros(table.num_rows, bool)
    for name, spans in region.items():
        assert name == "translation_score"
        inside = np.logical_or.reduce([no, *((values >= a) & (values <= b) for a, b in spans)])
    # A condition may be strict, an interval has its ends: no value of these pairs is on one.
    assert (inside == meets).all()
    assert bool(region) == (not meets.all())


def test_scores_that_are_all_the_same_have_an_axis() -> None:
    summary = Deciles(rows=[1] * 10, lowest=[1.0] * 10, highest=[1.0] * 10)
    edges = report_data.axis(summary, BINS)
    assert len(edges) == BINS + 1
    assert (np.diff(edges) > 0).all()
    assert edges[0] < 1 < edges[-1]


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


def test_the_axis_of_a_long_tail_ends_beyond_the_middle() -> None:
    lowest = [-100.0, *np.linspace(-0.9, -0.1, 9).tolist()]
    summary = Deciles(rows=[9] * 10, lowest=lowest, highest=[*lowest[1:], 0.0])
    edges = report_data.axis(summary, BINS)
    assert (edges[0], edges[-1]) == pytest.approx((-0.9 - 1.5 * 0.8, 0.0))


def test_the_density_is_of_difference_and_meaning_where_there_are_scores_of_both() -> None:
    empty = Deciles(rows=[0] * 10, lowest=[None] * 10, highest=[None] * 10)
    names = ["translation_score", "trigram_overlap", "content_overlap", "sentence_similarity"]
    found = report_data._density(dict.fromkeys(names, empty))
    assert found and (found.x, found.y) == ("content_overlap", "sentence_similarity")
    found = report_data._density(dict.fromkeys(names[:2], empty))
    assert found and (found.x, found.y) == ("trigram_overlap", "translation_score")


def test_the_density_is_of_the_scores_that_select() -> None:
    names = ["translation_score", "trigram_overlap", "content_overlap", "sentence_similarity"]
    found = report_data.axes(names, ["translation_score", "trigram_overlap"])
    assert found == ("trigram_overlap", "translation_score")
    assert report_data.axes([*names, "own"], ["own"]) == ("content_overlap", "own")
    known = report_data.axes([*names, "own"], ["own", "sentence_similarity"])
    assert known == ("content_overlap", "sentence_similarity")
    assert report_data.axes(["own"], []) is None
