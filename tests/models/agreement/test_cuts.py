"""The recommended cut, and the precision that is stated of it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from paraloom.models.agreement.cuts import Cut, Judged, measure, recommend

HIGHER = {"a": True, "b": False}
ROWS = {"a": [100] * 10, "b": [100] * 10}


def cut_of(good: list[int], wanted: float, *, name: str = "a", judged: int = 20) -> Cut | None:
    """The cut of a score with so many good pairs in each decile; every pair has a reference."""
    is_good = np.concatenate([np.arange(judged) < n for n in good])
    deciles = {name: np.repeat(np.arange(10), judged)}
    return recommend(Judged(deciles, HIGHER, is_good, np.arange(10 * judged), ROWS), wanted)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans(), st.integers(0, 20)),
        min_size=1,
        max_size=150,
    ),
    st.sampled_from([0.2, 0.5, 0.8]),
)
@settings(max_examples=60)
def test_no_other_cut_keeps_more_or_as_many_with_more_good_pairs(
    rows: list[tuple[int, int, bool, int]], wanted: float
) -> None:
    a, b, good, references = (np.array(column) for column in zip(*rows, strict=True))
    kept = {n: np.bincount(of, minlength=10).tolist() for n, of in (("a", a), ("b", b))}
    judged = Judged({"a": a, "b": b}, HIGHER, good.astype(bool), references, kept)
    found = recommend(judged, wanted, count=20)
    candidates: list[tuple[bool, float, float]] = []
    for deciles, size in product((9 - a, b), range(1, 11)):
        inside = deciles < size
        if inside.any():
            low = wilson_low(good[inside].mean(), inside.sum())
            percent, share = 100 * inside.sum() // len(good), good[inside].mean()
            candidates.append((True, percent, share) if low >= wanted else (False, low, 0))
    assert found is not None
    reached, best, share = max(candidates)
    assert found.reached == reached
    inside = np.isin(a if found.score == "a" else b, found.deciles)
    assert found.rows == inside.sum()
    assert found.precision == pytest.approx(good[inside].mean())
    if reached:
        assert 100 * found.rows // len(good) == best
        assert found.precision == pytest.approx(share)
        assert found.wilson[0] >= wanted
    else:
        assert found.wilson[0] == pytest.approx(best)


def wilson_low(share: float, pairs: float) -> float:
    z = 1.959963984540054
    middle = share + z**2 / (2 * pairs)
    half = z * np.sqrt(share * (1 - share) / pairs + z**2 / (4 * pairs**2))
    return float((middle - half) / (1 + z**2 / pairs))


def test_more_is_better() -> None:
    cut = cut_of([0, 0, 0, 0, 0, 0, 10, 20, 20, 20], 0.9)
    assert cut is not None and cut.reached
    assert (cut.score, cut.deciles, cut.rows, cut.precision) == ("a", (7, 8, 9), 300, 1.0)
    assert cut.wilson[0] == pytest.approx(binomtest(60, 60).proportion_ci(method="wilson").low)


def test_the_nearest_cut_is_named() -> None:
    cut = cut_of([0, 0, 0, 0, 0, 0, 0, 0, 16, 15], 0.9)
    assert cut is not None and not cut.reached
    assert (cut.deciles, cut.precision) == ((8, 9), 0.775)


def test_deciles_without_judgments_end_a_cut() -> None:
    deciles, every = np.repeat([9, 7, 6], 50), np.ones(150, bool)
    cut = recommend(Judged({"a": deciles}, HIGHER, every, np.arange(150), ROWS), 0.8)
    assert cut is not None and cut.deciles == (9,)
    none = recommend(Judged({"b": deciles}, HIGHER, every, np.arange(150), ROWS), 0.8)
    assert none is None
    nothing = np.array([], int)
    assert recommend(Judged({"a": nothing}, HIGHER, nothing > 0, nothing, ROWS), 0.8) is None


def test_one_reference_has_no_expectation() -> None:
    every = np.ones(10, bool)
    cut = recommend(Judged({"a": np.arange(10)}, HIGHER, every, np.zeros(10), ROWS), 0.1)
    assert cut is not None
    assert (cut.expected, cut.chance) == (None, None)


def test_a_cut_is_measured_on_other_pairs() -> None:
    cut = cut_of([0, 0, 0, 0, 0, 0, 10, 20, 20, 20], 0.9)
    deciles, good = np.array([9, 9, 8, 0]), np.array([True, False, True, True])
    other = Judged({"a": deciles}, HIGHER, good, np.arange(4), ROWS)
    assert cut is not None
    assert measure(other, cut) == pytest.approx((0.5 + 1) / 2)  # no pair of decile 7


def test_the_choice_of_the_best_of_many_is_in_the_stated_interval() -> None:
    """Thirty scores that say nothing: the chosen one only looks good."""
    random = np.random.default_rng(1)
    inside = below = 0
    for seed in range(40):
        good = random.random(200) < 0.6
        deciles = {f"s{i}": random.permutation(np.arange(200) % 10) for i in range(30)}
        directions, rows = dict.fromkeys(deciles, True), dict.fromkeys(deciles, [50] * 10)
        judged = Judged(deciles, directions, good, np.arange(200), rows)
        cut = recommend(judged, 0.8, count=300, seed=seed)
        assert cut is not None and cut.expected is not None
        inside += cut.expected[0] <= 0.6 <= cut.expected[1]
        below += cut.wilson[0] > 0.6
    assert inside >= 36
    assert below >= 20  # which Wilson's interval promised to be rare


def test_deciles_of_copies_keep_nothing() -> None:
    """The best two deciles have no pair that can be kept, and none is judged."""
    deciles, good = np.repeat(np.arange(8), 20), np.repeat(np.arange(8), 20) >= 5
    rows = {"a": [100] * 8 + [0, 0]}
    cut = recommend(Judged({"a": deciles}, HIGHER, good, np.arange(160), rows), 0.9)
    assert cut is not None and cut.reached
    assert (cut.deciles, cut.rows, cut.precision) == ((5, 6, 7, 8, 9), 300, 1.0)
