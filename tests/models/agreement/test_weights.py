"""Weights with which judged pairs have the deciles of the run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.agreement.weights import rake

decile = st.integers(0, 9)


@given(st.lists(st.tuples(decile, decile), min_size=1, max_size=60))
@settings(deadline=None)
def test_a_sample_like_the_run_has_equal_weights(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    rows = {n: (7 * np.bincount(of, minlength=10)).tolist() for n, of in (("a", a), ("b", b))}
    assert rake({"a": a, "b": b}, rows) == pytest.approx(np.ones(len(pairs)))


def test_the_margins_of_all_scores_are_those_of_the_run() -> None:
    random = np.random.default_rng(1)
    deciles = {name: random.integers(0, 10, 3000) for name in "abc"}
    rows = {name: random.integers(50, 150, 10).tolist() for name in "abc"}
    weights = rake(deciles, rows)
    assert weights.mean() == pytest.approx(1)
    for name, of in deciles.items():
        found = np.bincount(of, weights, minlength=10) / 3000
        assert found == pytest.approx(np.array(rows[name]) / sum(rows[name]), abs=1e-6)


def test_they_undo_a_sample_that_is_spread_over_deciles_with_few_rows() -> None:
    """Two scores of a corpus in which their deciles have unequal numbers of pairs to keep."""
    random = np.random.default_rng(2)
    a = random.choice(10, 40_000, p=np.arange(1, 11) / 55)
    b = np.clip(a + random.integers(-3, 4, len(a)), 0, 9)
    good = random.random(len(a)) < a / 9
    rows = {n: np.bincount(of, minlength=10).tolist() for n, of in (("a", a), ("b", b))}
    take = np.concatenate([np.flatnonzero(a == k)[:200] for k in range(10)])
    weights = rake({"a": a[take], "b": b[take]}, rows)
    assert good[take].mean() < good.mean() - 0.1
    assert np.average(good[take], weights=weights) == pytest.approx(good.mean(), abs=0.02)


def test_heavy_weights_are_trimmed() -> None:
    deciles = np.array([9] * 10 + [0] * 90)
    weights = rake({"a": deciles}, {"a": [50] + [0] * 8 + [50]})  # 5 and 0.56 untrimmed
    assert weights.mean() == pytest.approx(1)
    assert weights[0] / weights[-1] == pytest.approx(3 / (5 / 9))


def test_nothing() -> None:
    assert rake({"a": np.array([], int)}, {"a": [0] * 10}).tolist() == []
