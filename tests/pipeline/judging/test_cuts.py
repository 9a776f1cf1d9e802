"""Correlations, Wilson's intervals and weights, the recommended cut, and what is stated of it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, pearsonr, spearmanr

from paraloom.pipeline.judging.cuts import (
    ENOUGH,
    Cut,
    Judged,
    pearson_interval,
    recommend,
    resamples,
    spearman,
    weights_of,
    wilson,
)

HIGHER = {"a": True, "b": False}
ROWS = {"a": [100] * 10, "b": [100] * 10}

few_values = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 5)), min_size=2, max_size=40
)


@given(few_values)
def test_the_correlation_is_scipys_with_ties(rows: list[tuple[int, int, int]]) -> None:
    scores, labels, references = (np.array(column) for column in zip(*rows, strict=True))
    found = spearman({"s": scores}, labels, references, count=3)["s"]
    if np.ptp(scores) == 0 or np.ptp(labels) == 0:
        assert found[0] is None
    else:
        assert found[0] == pytest.approx(spearmanr(scores, labels).statistic, abs=1e-12)


def test_a_resample_is_one_of_the_repeated_rows() -> None:
    random = np.random.default_rng(1)
    scores, labels = random.integers(0, 9, (2, 60)).astype(float)
    references = np.repeat(np.arange(20), 3)
    found = spearman({"s": scores}, labels, references, count=60, seed=3)["s"]
    values = []
    for times in np.concatenate(list(resamples(20, 60, 3))):
        assert times.sum() == 20
        rows = np.repeat(np.arange(60), times[references].astype(int))
        values.append(spearmanr(scores[rows], labels[rows]).statistic)
    assert found[1] == pytest.approx(np.percentile(values, [2.5, 97.5]))


def test_the_interval_holds_the_true_correlation() -> None:
    """Pairs of a reference resemble each other: their number alone makes no interval narrow."""
    random = np.random.default_rng(5)
    pearson = 1 / np.sqrt(2 * 2.5)
    true = 6 / np.pi * np.arcsin(pearson / 2)  # of normal variables
    inside = 0
    for seed in range(80):
        effect = np.repeat(random.normal(size=50), 4)
        labels = effect + random.normal(size=200)
        scores = 0.5 * labels + np.repeat(random.normal(size=50), 4) + random.normal(size=200)
        references = np.repeat(np.arange(50), 4)
        interval = spearman({"s": scores}, labels, references, count=200, seed=seed)["s"][1]
        assert interval is not None
        inside += interval[0] <= true <= interval[1]
    assert inside >= 68


def test_nothing_and_one_reference_have_no_interval() -> None:
    empty = np.array([])
    assert spearman({"s": empty}, empty, empty)["s"] == (None, None)
    one = spearman({"s": np.array([1.0, 1.0])}, np.array([1.0, 2.0]), np.array([0, 0]))["s"]
    assert one == (None, None)


@given(st.integers(1, 2000), st.data())
def test_wilson_is_scipys(pairs: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, pairs))
    expected = binomtest(good, pairs).proportion_ci(method="wilson")
    assert wilson(good / pairs, pairs) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_unequal_weights_widen_the_interval() -> None:
    deciles, good = {"a": np.repeat(np.arange(10), 10)}, np.arange(100) % 2 > 0
    rows = [1] * 5 + [3] * 5
    even, uneven = (
        Judged(deciles, HIGHER, good, np.arange(100), {"a": of}).shares() for of in ([1] * 10, rows)
    )
    width = (uneven.high - uneven.low)[0, 0, -1]
    assert width > 1.05 * (even.high - even.low)[0, 0, -1]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_a_sample_like_the_run_has_equal_weights(values: list[int]) -> None:
    decile = np.array(values)
    rows = (7 * np.bincount(decile, minlength=10)).tolist()
    assert weights_of(decile, rows) == pytest.approx(np.ones(len(decile)))


def test_weights_undo_a_sample_that_is_spread_over_deciles_with_few_rows() -> None:
    random = np.random.default_rng(2)
    decile = random.choice(10, 40_000, p=np.arange(1, 11) / 55)
    good = random.random(len(decile)) < decile / 9
    take = np.concatenate([np.flatnonzero(decile == k)[:200] for k in range(10)])
    weights = weights_of(decile[take], np.bincount(decile, minlength=10).tolist())
    assert good[take].mean() < good.mean() - 0.1
    assert np.average(good[take], weights=weights) == pytest.approx(good.mean(), abs=0.02)
    trimmed = weights_of(np.array([9] * 10 + [0] * 90), [50] + [0] * 8 + [50])  # untrimmed 5, 0.56
    assert trimmed.mean() == pytest.approx(1)
    assert trimmed[0] / trimmed[-1] == pytest.approx(3 / (5 / 9))


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
    pairs = Judged({"a": a, "b": b}, HIGHER, good.astype(bool), references, kept)
    found = recommend(pairs, wanted, count=20)
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


def cut_of(pairs: Judged, wanted: float) -> Cut:
    cut = recommend(pairs, wanted)
    assert cut is not None
    return cut


def test_deciles_without_judgments_end_a_cut() -> None:
    deciles, every = np.repeat([9, 7, 6], 50), np.ones(150, bool)
    assert cut_of(Judged({"a": deciles}, HIGHER, every, np.arange(150), ROWS), 0.8).deciles == (9,)
    pairs = Judged({"b": deciles}, HIGHER, every, np.arange(150), ROWS)
    assert recommend(pairs, 0.8) is None
    nothing = np.array([], int)
    empty = Judged({"a": nothing}, HIGHER, nothing > 0, nothing, ROWS)
    assert (recommend(empty, 0.8), empty.references) == (None, 0)
    # But the best two deciles may consist of copies, which nobody judges and nothing keeps.
    eight = np.repeat(np.arange(8), 20)
    rows = {"a": [100] * 8 + [0, 0]}
    cut = cut_of(Judged({"a": eight}, HIGHER, eight >= 5, np.arange(160), rows), 0.9)
    assert cut.reached
    assert (cut.deciles, cut.rows, cut.precision) == ((5, 6, 7, 8, 9), 300, 1.0)


def test_one_reference_has_no_expectation() -> None:
    every = np.ones(10, bool)
    cut = cut_of(Judged({"a": np.arange(10)}, HIGHER, every, np.zeros(10), ROWS), 0.1)
    assert (cut.expected, cut.chance) == (None, None)


@pytest.mark.parametrize("references", [4, 19, 20])
def test_few_judgments_are_certain_of_nothing(references: int) -> None:
    """All are good, and ordered as the score says: so they are in every resample."""
    many = references >= ENOUGH
    deciles = 9 - np.arange(references) % 10
    pairs = Judged({"a": deciles}, HIGHER, np.ones(references, bool), np.arange(references), ROWS)
    cut = cut_of(pairs, 0.5)
    assert (cut.reached, cut.expected is None, cut.chance is None) == (many, not many, not many)
    assert cut.wilson[0] < 1
    scores, labels = np.arange(references, dtype=float), np.arange(references) * 5.0
    value, interval = spearman({"s": scores}, labels, np.arange(references), count=9)["s"]
    assert value == pytest.approx(1)
    assert interval == (pytest.approx((1, 1)) if many else None)


def test_a_few_pairs_of_many_recommend_no_cut() -> None:
    """Nine good ones in the best decile, whatever was judged elsewhere."""
    deciles = np.repeat([9, *range(9)], [9, *[20] * 9])
    pairs = Judged({"a": deciles}, HIGHER, deciles == 9, np.arange(189), ROWS)
    assert not cut_of(pairs, 0.6).reached and cut_of(pairs, 0.6).wilson[0] > 0.6


def test_the_interval_of_a_correlation_is_scipys() -> None:
    random = np.random.default_rng(3)
    first = random.normal(size=50)
    found = pearsonr(first, first + random.normal(size=50))
    interval = pearson_interval(100 * found.statistic, 50)
    assert interval == pytest.approx([100 * end for end in found.confidence_interval()])
    assert (pearson_interval(50, 19), pearson_interval(100, 50)) == (None, None)


def test_the_choice_of_the_best_of_many_is_in_the_stated_interval() -> None:
    """Thirty scores that say nothing: the chosen one only looks good."""
    random = np.random.default_rng(1)
    inside = below = 0
    for seed in range(40):
        good = random.random(200) < 0.6
        deciles = {f"s{i}": random.permutation(np.arange(200) % 10) for i in range(30)}
        directions, rows = dict.fromkeys(deciles, True), dict.fromkeys(deciles, [50] * 10)
        pairs = Judged(deciles, directions, good, np.arange(200), rows)
        cut = recommend(pairs, 0.8, count=300, seed=seed)
        assert cut is not None and cut.expected is not None
        inside += cut.expected[0] <= 0.6 <= cut.expected[1]
        below += cut.wilson[0] > 0.6
    assert inside >= 36
    assert below >= 20  # which Wilson's interval promised to be rare
