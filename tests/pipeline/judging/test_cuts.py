"""Correlations, Wilson's intervals, and the recommended cut."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, pearsonr, spearmanr

from paraloom.pipeline.judging.cuts import (
    ENOUGH,
    Cut,
    pearson_interval,
    recommend,
    spearman,
    wilson,
)

HIGHER = {"a": True, "b": False}
PLUS_MINUS = np.array([-1, 1])
ROWS = {"a": [100] * 10, "b": [100] * 10}

few_values = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 5)), min_size=2, max_size=40
)


@given(few_values)
def test_the_correlation_is_scipys_with_ties(rows: list[tuple[int, int, int]]) -> None:
    scores, labels, references = (np.array(column) for column in zip(*rows, strict=True))
    found = spearman({"s": scores}, labels, len({*references}))["s"]
    if np.ptp(scores) == 0 or np.ptp(labels) == 0:
        assert found[0] is None
    else:
        assert found[0] == pytest.approx(spearmanr(scores, labels).statistic, abs=1e-12)


def test_the_interval_holds_the_true_correlation() -> None:
    """Pairs of a reference resemble each other: their number alone makes no interval narrow."""
    random = np.random.default_rng(5)
    pearson = 1 / np.sqrt(2 * 2.5)
    true = 6 / np.pi * np.arcsin(pearson / 2)  # of normal variables
    inside = 0
    for _ in range(80):
        effect = np.repeat(random.normal(size=50), 4)
        labels = effect + random.normal(size=200)
        scores = 0.5 * labels + np.repeat(random.normal(size=50), 4) + random.normal(size=200)
        interval = spearman({"s": scores}, labels, 50)["s"][1]
        assert interval is not None
        inside += interval[0] <= true <= interval[1]
    assert inside >= 74


def test_the_interval_is_bonett_and_wrights() -> None:
    scores, labels = np.arange(30.0), np.random.default_rng(2).permutation(30).astype(float)
    value, interval = spearman({"s": scores, "less": -scores}, labels, 30)["s"]
    assert value is not None and interval is not None
    error = np.sqrt((1 + value**2 / 2) / 27)
    assert np.arctanh(interval) == pytest.approx(np.arctanh(value) + 1.959964 * error * PLUS_MINUS)


def test_nothing_and_one_reference_have_no_interval() -> None:
    empty = np.array([])
    assert spearman({"s": empty}, empty, 0)["s"] == (None, None)
    one = spearman({"s": np.array([1.0, 1.0])}, np.array([1.0, 2.0]), 1)["s"]
    assert one == (None, None)


@given(st.integers(1, 2000), st.data())
def test_wilson_is_scipys(pairs: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, pairs))
    expected = binomtest(good, pairs).proportion_ci(method="wilson")
    assert wilson(good / pairs, pairs) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()),
        min_size=1,
        max_size=150,
    ),
    st.sampled_from([0.2, 0.5, 0.8]),
)
@settings(max_examples=60)
def test_no_other_cut_keeps_more_or_as_many_with_more_good_pairs(
    rows: list[tuple[int, int, bool]], wanted: float
) -> None:
    a, b, good = (np.array(column) for column in zip(*rows, strict=True))
    kept = {n: np.bincount(of, minlength=10).tolist() for n, of in (("a", a), ("b", b))}
    found = recommend({"a": a, "b": b}, HIGHER, good.astype(bool), kept, wanted)
    candidates: list[tuple[bool, float, float]] = []
    for deciles, size in product((9 - a, b), range(1, 11)):
        inside = deciles < size
        if inside.any():
            interval = binomtest(int(good[inside].sum()), int(inside.sum()))
            low = interval.proportion_ci(method="wilson").low
            percent, share = 100 * inside.sum() // len(good), good[inside].mean()
            is_sure = low >= wanted and inside.sum() >= ENOUGH
            candidates.append((True, percent, share) if is_sure else (False, low, 0))
    assert found is not None
    reached, best, share = max(candidates)
    assert found.reached == reached
    inside = np.isin(a if found.score == "a" else b, found.deciles)
    assert found.rows == found.judged == inside.sum()
    assert found.good == good[inside].sum()
    assert found.precision == pytest.approx(good[inside].mean())
    whole = binomtest(int(good[inside].sum()), int(inside.sum())).proportion_ci(method="wilson")
    assert found.wilson == pytest.approx((whole.low, whole.high))
    if reached:
        assert 100 * found.rows // len(good) == best
        assert found.precision == pytest.approx(share)
        assert found.wilson[0] >= wanted
    else:
        assert found.wilson[0] == pytest.approx(best)


def cut_of(
    deciles: Mapping[str, Any], good: Any, wanted: float, rows: Mapping[str, Sequence[int]] = ROWS
) -> Cut:
    cut = recommend(deciles, HIGHER, good, rows, wanted)
    assert cut is not None
    return cut


def test_deciles_without_judgments_end_a_cut() -> None:
    deciles, every = np.repeat([9, 7, 6], 50), np.ones(150, bool)
    assert cut_of({"a": deciles}, every, 0.8).deciles == (9,)
    assert recommend({"b": deciles}, HIGHER, every, ROWS, 0.8) is None
    nothing = np.array([], int)
    assert recommend({"a": nothing}, HIGHER, nothing > 0, ROWS, 0.8) is None
    assert recommend({}, HIGHER, nothing > 0, {}, 0.8) is None
    # But the best two deciles may consist of copies, which nobody judges and nothing keeps.
    eight = np.repeat(np.arange(8), 20)
    cut = cut_of({"a": eight}, eight >= 5, 0.9, {"a": [100] * 8 + [0, 0]})
    assert cut.reached
    assert (cut.deciles, cut.rows, cut.precision) == ((5, 6, 7, 8, 9), 300, 1.0)


@pytest.mark.parametrize("pairs", [4, 19, 20])
def test_few_judgments_are_certain_of_nothing(pairs: int) -> None:
    many = pairs >= ENOUGH
    cut = cut_of({"a": 9 - np.arange(pairs) % 10}, np.ones(pairs, bool), 0.5)
    assert cut.reached == many and cut.wilson[0] < 1
    scores, labels = np.arange(pairs, dtype=float), np.arange(pairs) * 5.0
    value, interval = spearman({"s": scores}, labels, pairs)["s"]
    assert value == pytest.approx(1)
    assert interval == (pytest.approx((1, 1)) if many else None)


def test_a_few_pairs_of_many_recommend_no_cut() -> None:
    """Nine good ones in the best decile, whatever was judged elsewhere."""
    deciles = np.repeat([9, *range(9)], [9, *[20] * 9])
    cut = cut_of({"a": deciles}, deciles == 9, 0.6)
    assert not cut.reached and cut.wilson[0] > 0.6


def test_the_interval_of_a_correlation_is_scipys() -> None:
    random = np.random.default_rng(3)
    first = random.normal(size=50)
    found = pearsonr(first, first + random.normal(size=50))
    interval = pearson_interval(100 * found.statistic, 50)
    assert interval == pytest.approx([100 * end for end in found.confidence_interval()])
    assert (pearson_interval(50, 19), pearson_interval(100, 50)) == (None, None)
