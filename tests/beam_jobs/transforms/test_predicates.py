"""Conditions: what can be written, what is said of what cannot, what they hold for."""

import operator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraloom.beam_jobs.transforms.predicates import Predicate
from paraloom.models.errors import UserError

SCORERS = ["trigram_overlap", "unigram_f1"]
FLOATS = st.floats(-1e3, 1e3, width=32)


@pytest.mark.parametrize(
    ("text", "column", "compare", "value"),
    [
        ("trigram_overlap <= 0.5", "trigram_overlap", "<=", 0.5),
        ("trigram_overlap>-0.25", "trigram_overlap", ">", -0.25),
        ("  unigram_f1 < 1e-3 ", "unigram_f1", "<", 0.001),
        ("unigram_f1_decile in 2..7", "unigram_f1_decile", "in", (2, 7)),
        ("translation_tokens <= +1E+02", "translation_tokens", "<=", 100),
        ("trigram_overlap == 1", "trigram_overlap", "==", 1),
        ("unigram_f1 in 0.25 .. 0.75", "unigram_f1", "in", (0.25, 0.75)),
    ],
)
def test_what_can_be_written(
    text: str, column: str, compare: str, value: float | tuple[float, float]
) -> None:
    condition = Predicate.parse(text)
    assert condition == Predicate(column, compare, value)
    condition.check(SCORERS)
    assert Predicate.parse(str(condition)) == condition


@pytest.mark.parametrize(
    "text",
    [
        "", "a <=", "<= 0.5", "a = 0.5", "a === 0.5", "0.2 < a < 0.5", "a <= nan", "a <= 1_0",
        "a <= unigram_f1", "a in 2", "a in 2...7", "a <= .5", "a <= 0.5 and b > 0", "a <= 1e9999",
    ],
)  # fmt: skip
def test_what_cannot_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="is no condition; write it as") as caught:
        Predicate.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "column", "holds"),
    [
        ("domain = news", pa.array(["news", "web", None, "News"]), [1, 0, 0, 0]),
        ("domain != news", pa.array(["news", "web", None, "News"]), [0, 1, 1, 1]),
        ('meta.domain = "web text"', pa.array(["web", "web text"]), [0, 1]),
        ("year = 2020", pa.array([2019, 2020, None]), [0, 1, 0]),
        ("id = 9007199254740993", pa.array([9007199254740992, 9007199254740993]), [0, 1]),
        ("share = 0.5", pa.array([0.5, None, 1.5]), [1, 0, 0]),
        ("year >= 2020", pa.array([2019, 2020, None]), [0, 1, 0]),
        ("share in 0..1", pa.array([0.5, None, 1.5]), [1, 0, 0]),
        ("checked = yes", pa.array([True, False, None]), [1, 0, 0]),
        ("checked != no", pa.array([True, False, None]), [1, 0, 1]),
    ],
)
def test_kept_columns_of_any_type(text: str, column: pa.Array, holds: list[int]) -> None:
    condition = Predicate.parse(text, words=True)
    condition.check(SCORERS, [condition.column])
    condition.check_type(column.type)
    assert condition.holds_in(column).tolist() == [bool(value) for value in holds]
    assert condition.holds_in(pa.chunked_array([column])).tolist() == [bool(v) for v in holds]
    assert Predicate.parse(str(condition), words=True) == condition


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a <= 3", pa.string()),
        ("a in 1..2", pa.bool_()),
        ("a = maybe", pa.bool_()),
        ("a = news", pa.int64()),
        ("a != news", pa.float64()),
    ],
)
def test_a_kept_column_of_another_type(text: str, kind: pa.DataType) -> None:
    with pytest.raises(UserError, match=rf"'{text}': the values of a are of the type {kind}"):
        Predicate.parse(text, words=True).check_type(kind)


def test_a_score_is_compared_with_numbers() -> None:
    with pytest.raises(ValueError, match="unigram_f1 is compared by <="):
        Predicate.parse("unigram_f1 = high", words=True).check(SCORERS, ["domain"])


def test_a_range_the_wrong_way_round() -> None:
    with pytest.raises(ValueError, match=r"holds for nothing: 7 is more than 2"):
        Predicate.parse("unigram_f1_decile in 7..2")


@pytest.mark.parametrize("text", ["bleu <= 0.5", "bleu_decile >= 3", "source <= 1"])
def test_an_unknown_column(text: str) -> None:
    known = (
        "is no column of the pairs; there are trigram_overlap, unigram_f1, reference_tokens, "
        r"translation_tokens, and the deciles of the scores \(trigram_overlap_decile …\): "
    )
    with pytest.raises(ValueError, match=known):
        Predicate.parse(text).check(SCORERS)


@pytest.mark.parametrize("numbers", ["in -1..3", "in 4..10", "<= 3.5", "> 10", ">= 1e2"])
def test_deciles_go_from_0_to_9(numbers: str) -> None:
    with pytest.raises(ValueError, match="deciles are whole numbers from 0 to 9"):
        Predicate.parse(f"unigram_f1_decile {numbers}").check(SCORERS)


@given(
    st.sampled_from(["<=", ">=", "<", ">", "=="]),
    FLOATS,
    st.lists(FLOATS, min_size=1).map(lambda v: np.array(v, np.float32)),
)
def test_holds_as_python_compares(compare: str, value: float, values: NDArray[np.float32]) -> None:
    holds = Predicate("x", compare, value).holds(np.append(values, np.float32(value)))
    names = {"<=": "le", ">=": "ge", "<": "lt", ">": "gt", "==": "eq"}
    expected = [getattr(operator, names[compare])(v, value) for v in [*values.tolist(), value]]
    assert holds.dtype == bool
    assert holds.tolist() == expected


def test_both_ends_of_a_range_belong_to_it() -> None:
    deciles = np.arange(10, dtype=np.int8)
    assert np.flatnonzero(Predicate.parse("d in 2..7").holds(deciles)).tolist() == [*range(2, 8)]


@pytest.mark.filterwarnings("error")
def test_a_bound_that_no_score_reaches() -> None:
    scores = np.array([-0.5, 0.1], np.float32)
    assert Predicate.parse("x <= 1e99").holds(scores).all()
    assert not Predicate.parse("x in 1e98 .. 1e99").holds(scores).any()


def test_a_bound_is_meant_in_the_precision_of_the_scores() -> None:
    tenth = np.array([0.1], np.float32)  # as float64 it is more than 0.1
    assert Predicate.parse("x <= 0.1").holds(tenth).all()
    assert not Predicate.parse("x > 0.1").holds(tenth).any()
