"""From scores of deciles to a run of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.pipeline.records import DecileTrial
from paraloom.pipeline.stages.selection.search import (
    best_deciles,
    grow_ranges,
    largest_of_the_best,
    pooled_deviation,
)

curves = st.dictionaries(st.integers(0, 9), st.floats(-100, 100), min_size=1)


def trial(rows: int, *scores: float, scorer: str = "a") -> DecileTrial:
    return DecileTrial(scorer=scorer, deciles=(rows,), rows=rows, pairs=rows, scores=scores)


@given(curves)
def test_runs_grow_by_a_neighbour_at_a_time_from_the_best(curve: dict[int, float]) -> None:
    runs = grow_ranges(curve)
    assert curve[runs[0][0]] == max(curve.values())
    for shorter, longer in zip([(), *runs], runs, strict=False):
        assert set(shorter) < set(longer) and len(longer) == len(shorter) + 1
        assert list(longer) == list(range(longer[0], longer[-1] + 1))
        assert set(longer) <= set(curve)
    low, high = runs[-1][0], runs[-1][-1]
    assert low - 1 not in curve and high + 1 not in curve


@given(curves)
def test_the_better_neighbour_comes_first(curve: dict[int, float]) -> None:
    for shorter, longer in zip(grow_ranges(curve), grow_ranges(curve)[1:], strict=False):
        (new,) = set(longer) - set(shorter)
        other = shorter[-1] + 1 if new < shorter[0] else shorter[0] - 1
        assert curve[new] >= curve.get(other, -math.inf)


def test_spread_is_that_within_groups() -> None:
    random = np.random.default_rng(1)
    groups = random.normal(size=(400, 3)) * 2 + np.arange(400)[:, None] * 100
    pooled = math.sqrt(np.mean([np.var(group, ddof=1) for group in groups]))
    assert pooled_deviation(groups.tolist()) == pytest.approx(pooled)
    assert pooled == pytest.approx(2, rel=0.1)
    assert pooled_deviation([(1.0,), (5.0,)]) == 0


def test_the_largest_of_those_as_good_as_the_best() -> None:
    small, best = trial(10, 40.0, 41.0), trial(20, 41.0, 42.0)
    large, worse = trial(30, 41.0, 41.2), trial(90, 40.0, 40.0)
    assert largest_of_the_best([small, best, large, worse], 0.5) == large
    assert largest_of_the_best([small, best, large, worse], 0.3) == best
    assert largest_of_the_best([small, best, large, worse], 2.0) == worse
    near, better = trial(30, 41.0), trial(30, 41.3, scorer="b")
    assert largest_of_the_best([best, near], 0.5) == near  # one standard error below the best
    assert largest_of_the_best([near, better], 0.5) == better  # of equally large ones
    assert largest_of_the_best([better, near], 0.5) == better


def test_of_equal_deciles_the_higher() -> None:
    curve = {0: 1.0, 3: 2.0, 4: 3.0, 5: 3.0, 6: 2.0, 7: 2.0}
    assert grow_ranges(curve) == [(5,), (4, 5), (4, 5, 6), (4, 5, 6, 7), (3, 4, 5, 6, 7)]
    assert best_deciles(curve, 1) == (5,)
    assert best_deciles(curve, 3) == (4, 5, 7)
    assert best_deciles(curve, 9) == (0, 3, 4, 5, 6, 7)
