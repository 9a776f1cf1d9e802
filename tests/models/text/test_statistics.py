"""Moments in parts against numpy on everything, and entropies against scipy's."""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from paraloom.models.text.statistics import Moments, entropy, sentence_moments
from paraloom.models.text.tokens import PairText
from paraloom.models.text.vectors import UNKNOWN, WordVectors

VALUES = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30)


def check(found: Moments, values: Sequence[float] | NDArray[np.float64]) -> None:
    assert found.count == len(values)
    assert found.mean == pytest.approx(np.mean(values), abs=1e-6, rel=1e-9)
    assert found.deviation == pytest.approx(np.std(values), abs=1e-6, rel=1e-6)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_parts_merge_to_the_whole(parts: list[list[float]]) -> None:
    merged = sum((Moments.of(np.array(part, np.float32)) for part in parts), Moments())
    check(merged, [value for part in parts for value in part])


def test_nothing_cancels_far_from_zero() -> None:
    values = 1e9 + np.array([4.0, 7.0, 13.0, 16.0])
    merged = Moments.of(values[:1]) + Moments.of(values[1:])
    assert merged.deviation == pytest.approx(math.sqrt(22.5), rel=1e-12)


def test_of_nothing() -> None:
    nothing = Moments.of(np.array([], np.float32))
    some = Moments.of(np.array([1, 3]))
    assert sum([nothing, some, nothing], Moments()) == some
    assert nothing == Moments()
    assert nothing.deviation == 0


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), min_size=1))
def test_weights_are_repetitions(rows: list[tuple[int, int]]) -> None:
    values, often = (np.array(column) for column in zip(*rows, strict=True))
    repeated = np.repeat(values, often)
    found = Moments.of(values, often)
    if len(repeated):
        check(found, repeated)
    assert found.count == len(repeated)


@given(st.lists(st.integers(0, 1000), min_size=1).filter(any))
def test_entropy_is_the_mean_surprise(numbers: list[int]) -> None:
    counts = np.array(numbers)
    found = entropy(counts)
    assert found.mean == pytest.approx(stats.entropy(counts), abs=1e-12)
    every = np.repeat(-np.log(counts[counts > 0] / counts.sum()), counts[counts > 0])
    assert found.deviation == pytest.approx(every.std(), abs=1e-9)
    assert found.count == counts.sum()


def test_entropy_of_nothing() -> None:
    assert entropy(np.array([], np.int64)).count == 0


def test_sentences() -> None:
    idf = WordVectors([UNKNOWN, "a", "dog", "."], np.array([[9], [1], [2], [0.5]], np.float32))
    pairs = PairText(pa.array(["a dog.", "", "a bird"]), pa.array(["dog", "a a", "a a a"]))
    found = sentence_moments(pairs, idf)
    check(found["reference_tokens"], [3, 0, 2])
    check(found["translation_tokens"], [1, 2, 3])
    check(found["reference_idf"], [3.5 / 3, 5])  # none of the empty one
    check(found["translation_idf"], [2, 1, 1])
