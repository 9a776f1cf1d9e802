"""Shares of good pairs, Wilson's intervals, exact deciles, and weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from paraloom.beam_jobs.bucket import decile_ranks
from paraloom.models.agreement.precision import (
    best_deciles,
    by_decile,
    exact_deciles,
    weights_of,
    wilson,
)


@given(st.integers(1, 2000), st.data())
def test_wilson_is_scipys(pairs: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, pairs))
    low, high = wilson(np.array(good / pairs), np.array(float(pairs)))
    expected = binomtest(good, pairs).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=120))
def test_deciles_are_exact(values: list[int]) -> None:
    scores = np.array(values, float)
    deciles = exact_deciles(scores)
    sizes = np.bincount(deciles, minlength=10)
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == 10
    order = np.lexsort((np.arange(len(scores)), scores))  # ties by position
    assert np.all(np.diff(deciles[order]) >= 0)


@given(st.integers(1, 300))
def test_deciles_begin_where_those_of_a_run_do(rows: int) -> None:
    deciles = exact_deciles(np.arange(rows))
    assert np.searchsorted(deciles, np.arange(1, 10)).tolist() == decile_ranks(rows)


def test_equal_weights_are_pooled_pairs() -> None:
    good = np.array([9, 8, 8, 7, 5, 5, 4, 2, 1, 0], float)
    judged = np.arange(10, 20).astype(float)
    found = best_deciles(3 * good, 3 * judged, 9 * judged, np.full(10, 77.0))
    for k in range(10):
        pairs = int(judged[: k + 1].sum())
        expected = binomtest(int(good[: k + 1].sum()), pairs).proportion_ci(method="wilson")
        assert found.share[k] == pytest.approx(good[: k + 1].sum() / pairs)
        assert (found.low[k], found.high[k]) == pytest.approx((expected.low, expected.high))


def test_unequal_weights_widen_the_interval() -> None:
    ones = np.ones(10)
    even = best_deciles(5 * ones, 10 * ones, 10 * ones, ones)
    uneven = best_deciles(5 * ones, 10 * ones, 30 * ones, ones)
    assert np.all(uneven.high - uneven.low > even.high - even.low)


def test_a_decile_with_rows_but_no_judged_pairs_ends_what_is_measured() -> None:
    judged = np.array([0, 5, 0, 5, 5, 5, 5, 5, 5, 5], float)
    rows = np.array([0, 9, 9, 9, 9, 9, 9, 9, 9, 9], float)
    single = by_decile(judged / 2, judged)
    several = best_deciles(judged / 2, judged, judged, rows)
    assert np.isnan(single.share).tolist() == [k in (0, 2) for k in range(10)]
    assert np.isnan(several.share).tolist() == [k != 1 for k in range(10)]
    assert several.share[1] == 0.5


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_a_sample_like_the_run_has_equal_weights(values: list[int]) -> None:
    decile = np.array(values)
    rows = (7 * np.bincount(decile, minlength=10)).tolist()
    assert weights_of(decile, rows) == pytest.approx(np.ones(len(decile)))


def test_they_undo_a_sample_that_is_spread_over_deciles_with_few_rows() -> None:
    random = np.random.default_rng(2)
    decile = random.choice(10, 40_000, p=np.arange(1, 11) / 55)
    good = random.random(len(decile)) < decile / 9
    take = np.concatenate([np.flatnonzero(decile == k)[:200] for k in range(10)])
    weights = weights_of(decile[take], np.bincount(decile, minlength=10).tolist())
    assert good[take].mean() < good.mean() - 0.1
    assert np.average(good[take], weights=weights) == pytest.approx(good.mean(), abs=0.02)


def test_heavy_weights_are_trimmed() -> None:
    decile = np.array([9] * 10 + [0] * 90)
    weights = weights_of(decile, [50] + [0] * 8 + [50])  # 5 and 0.56 untrimmed
    assert weights.mean() == pytest.approx(1)
    assert weights[0] / weights[-1] == pytest.approx(3 / (5 / 9))
