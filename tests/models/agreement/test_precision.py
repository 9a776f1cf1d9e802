"""Shares of good pairs, Wilson's intervals, and exact deciles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from beam_jobs.bucket import decile_ranks
from models.agreement.precision import best_deciles, by_decile, exact_deciles, wilson


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


def test_deciles_with_as_many_judged_pairs_are_pooled() -> None:
    good = np.array([9, 8, 8, 7, 5, 5, 4, 2, 1, 0], float)
    found = best_deciles(good, np.full(10, 10.0), np.full(10, 77.0))
    for k in range(10):
        expected = binomtest(int(good[: k + 1].sum()), 10 * (k + 1)).proportion_ci(method="wilson")
        assert found.share[k] == pytest.approx(good[: k + 1].mean() / 10)
        assert (found.low[k], found.high[k]) == pytest.approx((expected.low, expected.high))


def test_a_decile_judged_more_often_counts_no_more() -> None:
    good, judged = np.full(10, 5.0), np.full(10, 10.0)
    good[0], judged[0] = 1000, 1000
    found = best_deciles(good, judged, np.full(10, 50.0))
    assert found.share[1] == pytest.approx(0.75)
    assert found.low[1] < binomtest(1005, 1010).proportion_ci(method="wilson").low


def test_without_judged_pairs_there_is_no_share() -> None:
    judged = np.array([5, 0, 5, 5, 5, 5, 5, 5, 5, 5], float)
    single = by_decile(judged / 2, judged)
    several = best_deciles(judged / 2, judged, np.ones(10))
    assert np.isnan(single.share).tolist() == [k == 1 for k in range(10)]
    assert np.isnan(several.share).tolist() == [k >= 1 for k in range(10)]


def test_a_decile_counts_as_many_rows_as_it_has() -> None:
    good, judged = np.full(10, 0.0), np.full(10, 10.0)
    good[1] = 10
    rows = np.array([30, 10, 0, 10, 10, 10, 10, 10, 10, 10], float)
    judged[2] = 0  # no rows, no judgments: the deciles after it are measured
    found = best_deciles(good, judged, rows)
    assert found.share[1:4] == pytest.approx([10 / 40, 10 / 40, 10 / 50])
    none = best_deciles(good, judged, np.zeros(10))
    assert np.isnan(none.share).all()
