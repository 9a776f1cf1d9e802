"""Spearman's correlation and its interval by bootstrap over references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from paraloom.models.agreement.correlation import spearman
from paraloom.models.agreement.resampling import resamples

few_values = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(0, 5)), min_size=2, max_size=40
)


@given(few_values)
def test_it_is_scipys_with_ties(rows: list[tuple[int, int, int]]) -> None:
    scores, labels, references = (np.array(column) for column in zip(*rows, strict=True))
    found = spearman({"s": scores}, labels, references, count=3)["s"]
    if np.ptp(scores) == 0 or np.ptp(labels) == 0:
        assert found.value is None
    else:
        assert found.value == pytest.approx(spearmanr(scores, labels).statistic, abs=1e-12)


def test_a_resample_is_one_of_the_repeated_rows() -> None:
    random = np.random.default_rng(1)
    scores, labels = random.integers(0, 9, (2, 60)).astype(float)
    references = np.repeat(np.arange(12), 5)
    found = spearman({"s": scores}, labels, references, count=40, seed=3)["s"]
    values = []
    for times in np.concatenate(list(resamples(12, 40, 3))):
        rows = np.repeat(np.arange(60), times[references].astype(int))
        values.append(spearmanr(scores[rows], labels[rows]).statistic)
    assert found.interval == pytest.approx(np.percentile(values, [2.5, 97.5]))


def test_references_are_resampled_and_not_pairs() -> None:
    """Pairs of a reference that are all alike tell no more than one of them."""
    random = np.random.default_rng(2)
    labels = random.normal(size=40)
    scores = labels + random.normal(size=40)
    once = spearman({"s": scores}, labels, np.arange(40))["s"].interval
    many = [np.repeat(values, 20) for values in (scores, labels, np.arange(40))]
    repeated = spearman({"s": many[0]}, many[1], many[2])["s"].interval
    assert once is not None and repeated is not None
    assert repeated == pytest.approx(once, abs=0.02)


def test_the_interval_holds_the_true_correlation() -> None:
    random = np.random.default_rng(5)
    pearson = 1 / np.sqrt(2 * 2.5)
    true = 6 / np.pi * np.arcsin(pearson / 2)  # of normal variables
    inside = 0
    for seed in range(40):
        effect = np.repeat(random.normal(size=50), 4)
        labels = effect + random.normal(size=200)
        scores = 0.5 * labels + np.repeat(random.normal(size=50), 4) + random.normal(size=200)
        references = np.repeat(np.arange(50), 4)
        interval = spearman({"s": scores}, labels, references, count=200, seed=seed)["s"].interval
        assert interval is not None
        inside += interval[0] <= true <= interval[1]
    assert inside >= 34


def test_nothing_and_one_reference_have_no_interval() -> None:
    empty = np.array([])
    assert spearman({"s": empty}, empty, empty)["s"] == (None, None)
    one = spearman({"s": np.array([1.0, 1.0])}, np.array([1.0, 2.0]), np.array([0, 0]))["s"]
    assert one == (None, None)
