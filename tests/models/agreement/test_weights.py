"""Weights with which judged pairs have the deciles of the run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.models.agreement.weights import weights_of


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_a_sample_like_the_run_has_equal_weights(values: list[int]) -> None:
    decile = np.array(values)
    rows = (7 * np.bincount(decile, minlength=10)).tolist()
    assert weights_of(decile, rows) == pytest.approx(np.ones(len(decile)))


def test_the_deciles_are_those_of_the_run() -> None:
    random = np.random.default_rng(1)
    decile, rows = random.integers(0, 10, 3000), random.integers(50, 150, 10)
    weights = weights_of(decile, rows.tolist())
    assert weights.mean() == pytest.approx(1)
    found = np.bincount(decile, weights, minlength=10) / 3000
    assert found == pytest.approx(rows / rows.sum())


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


def test_nothing() -> None:
    assert weights_of(np.array([], int), [0] * 10).tolist() == []
