"""Conditions: what can be written, what they hold for against plain definitions, and what they find
among broken lines."""

import operator
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.untranslated import CONDITIONS, KINDS, add_noise, read_sides
from paraloom.beam_jobs.transforms.conditions import Predicate, reasons
from paraloom.models.nmt.families.base import Languages
from paraloom.models.text.language_identifier import LANGUAGES, _model

TEXT = st.text(
    st.sampled_from("aábČ9 .!?…”)\"'-,:\u0301हि\u00a0\u3000\u200f»›】》"), min_size=1, max_size=20
).filter(lambda text: bool(text.strip()))  # fmt: skip


def holds(condition: str, source: str, reference: str) -> bool:
    found = reasons(pa.array([source]), pa.array([reference]), [Predicate.parse(condition)])
    return str(found[0]) == ""


def is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


@settings(max_examples=60)
@given(source=TEXT, reference=TEXT)
def test_each_column_is_as_defined(source: str, reference: str) -> None:
    def share(text: str) -> float:
        visible = [c for c in text if not c.isspace()]
        return sum(map(is_letter, visible)) / len(visible)

    def ends(text: str) -> bool:
        return text.rstrip(" \"')”»›】》\u00a0\u3000\u200f").endswith((".", "!", "?", "…"))

    def plain(text: str) -> list[str]:
        text = unicodedata.normalize("NFKC", text.lower())
        return "".join(c if is_letter(c) or c.isalnum() else " " for c in text).split()

    for name, text in (("source", source), ("reference", reference)):
        assert holds(f"{name}_letters >= {share(text) - 1e-6:.7f}", source, reference)
        assert not holds(f"{name}_letters > {share(text) + 1e-6:.7f}", source, reference)
        assert holds(f"{name}_characters in {len(text)}..{len(text)}", source, reference)
        word = "yes" if ends(text) else "no"
        assert holds(f"{name}_final_punctuation = {word}", source, reference)
    word = "yes" if ends(source) == ends(reference) else "no"
    assert holds(f"same_final_punctuation = {word}", source, reference)
    word = "yes" if plain(source) == plain(reference) else "no"
    assert holds(f"identical = {word}", source, reference)
    ratio = len(source) / len(reference)
    assert holds(f"character_ratio in {ratio - 1e-6:.7f}..{ratio + 1e-6:.7f}", source, reference)


def test_each_side_has_the_tokens_of_moses_in_its_language() -> None:
    from sacremoses import MosesTokenizer  # takes a second

    text, sides = 'He said: "Mr. Kos, is it a dog?"', {"source": "cs", "reference": "en"}
    counts = {name: len(MosesTokenizer(code).tokenize(text)) for name, code in sides.items()}
    assert counts["source"] != counts["reference"]  # Mr. is an English abbreviation
    ratio = counts["source"] / counts["reference"]
    both = pa.array([text])
    for condition in (
        *(f"{name}_tokens in {count}..{count}" for name, count in counts.items()),
        f"token_ratio in {ratio - 1e-6}..{ratio + 1e-6}",
    ):
        found = reasons(both, both, [Predicate.parse(condition)], Languages("cs", "en"))
        assert found.tolist() == [""]


def test_the_reason_is_the_first_condition_that_fails() -> None:
    sides = pa.array(["a b c", "a b c", "a"]), pa.array(["a b c", "x", "y"])
    conditions = [Predicate.parse(text) for text in ("source_tokens <=2", "identical= no")]
    long, same = "not source_tokens <= 2", "not identical = no"
    assert reasons(*sides, conditions).tolist() == [long, long, ""]
    assert reasons(*sides, conditions[::-1]).tolist() == [same, long, ""]
    assert reasons(*sides, []).tolist() == ["", "", ""]


def test_final_punctuation_of_other_scripts() -> None:
    ends = ["នេះជាសៀវភៅ។", "ဒါစာအုပ်ပါ။", "ነው፧", "本当｡", "ཡོད།", "ꯄꯥꯏ꯫", "Τι;", "No;"]
    condition = [Predicate.parse("source_final_punctuation = yes")]
    found = reasons(pa.array(ends), pa.array(ends), condition, Languages("en", "el"))
    assert [not reason for reason in found] == [True] * 6 + [False] * 2
    same = [Predicate.parse("same_final_punctuation = yes")]
    found = reasons(pa.array(["No?"]), pa.array(["Όχι;"]), same, Languages("en", "ell_Grek"))
    assert found.tolist() == [""]


def test_the_language_codes_are_those_of_the_model() -> None:
    texts = ["ahoj", "guten Tag", "你好", "привет", "สวัสดี", "xin chào", "", "12", "ħello"]
    labels = {label for text in texts for label in _model().predict(text, 400, 0.0)[0]}
    assert {label.removeprefix("__label__") for label in labels} <= set(LANGUAGES)
    assert len(set(LANGUAGES)) == len(LANGUAGES) == 176


def test_broken_lines_among_multi30k(data: Path) -> None:
    lines = add_noise(read_sides(data / "multi30k")[:6000], share=0.1, seed=1)
    assert lines == add_noise(read_sides(data / "multi30k")[:6000], share=0.1, seed=1)
    kinds = np.array([line.kind for line in lines])
    assert set(kinds) == {"", *KINDS}
    source, reference = (pa.array([line[side] for line in lines]) for side in (0, 1))
    rejected = reasons(source, reference, [Predicate.parse(text) for text in CONDITIONS]) != ""
    assert rejected[kinds != ""].mean() >= 0.9
    assert rejected[kinds == ""].mean() <= 0.02


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
        "", "a <=", "<= 0.5", "a === 0.5", "0.2 < a < 0.5", "a <= nan", "a <= 1_0",
        "a <= unigram_f1", "a in 2", "a in 2...7", "a <= .5", "a <= 0.5 and b > 0", "a <= 1e9999",
    ],
)  # fmt: skip
def test_what_cannot_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="is not a condition; write") as caught:
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
        ("id == 9007199254740993", pa.array([9007199254740992, 9007199254740993, None]), [0, 1, 0]),
        ("id < 9007199254740993", pa.array([9007199254740992, 9007199254740993]), [1, 0]),
        ("id in -9e18..9223372036854775806", pa.array([2**63 - 1, 2**63 - 2, None]), [0, 1, 0]),
        ("id <= 9999999999999999999", pa.array([2**63 - 1, 0]), [1, 1]),
        ("share = 0.5", pa.array([0.5, None, 1.5]), [1, 0, 0]),
        ("year >= 2020", pa.array([2019, 2020, None]), [0, 1, 0]),
        ("share in 0..1", pa.array([0.5, None, 1.5]), [1, 0, 0]),
        ("checked = yes", pa.array([True, False, None]), [1, 0, 0]),
        ("checked != no", pa.array([True, False, None]), [1, 0, 1]),
    ],
)
def test_kept_columns_of_any_type(text: str, column: pa.Array, holds: list[int]) -> None:
    condition = Predicate.parse(text)
    condition.check(SCORERS, [condition.column])
    condition.check_type(column.type)
    assert condition.holds_in(column).tolist() == [bool(value) for value in holds]
    assert condition.holds_in(pa.chunked_array([column])).tolist() == [bool(v) for v in holds]
    assert Predicate.parse(str(condition)) == condition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unigram_f1 = high", "unigram_f1 is compared by <="),
        *((f"unigram_f1_decile {n}", "deciles are whole numbers from 0 to 9")
          for n in ("in -1..3", "in 4..10", "<= 3.5")),
        *((text, "is not a column of the pairs; choose trigram_overlap, unigram_f1")
          for text in ("bleu <= 0.5", "bleu_decile >= 3", "source <= 1")),
    ],
)  # fmt: skip
def test_what_scored_pairs_do_not_have(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Predicate.parse(text).check(SCORERS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source_tokens = few", "source_tokens is compared with a number by <="),
        ("identical != yes", "write `identical = yes` or `identical = no`"),
        ("source_language <= 3", "write `source_language = en`"),
        ("source_token <= 3", "did you mean source_tokens"),
        ("source_language = xx", "not a language code of the identifier; codes are as in ISO"),
        ("source_language = ces", "identifier; write cs"),
    ],
)
def test_what_untranslated_pairs_do_not_have(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Predicate.parse(text).check_untranslated()


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


@pytest.mark.filterwarnings("error")
def test_bounds_at_and_beyond_the_values() -> None:
    with pytest.raises(ValueError, match=r"can never be true: 7 is more than 2"):
        Predicate.parse("d in 7..2")
    deciles = np.arange(10, dtype=np.int8)
    assert np.flatnonzero(Predicate.parse("d in 2..7").holds(deciles)).tolist() == [*range(2, 8)]
    scores = np.array([-0.5, 0.1], np.float32)  # as float64 0.1 is less
    assert Predicate.parse("x <= 1e99").holds(scores).all()
    assert not Predicate.parse("x in 1e98 .. 1e99").holds(scores).any()
    assert Predicate.parse("x <= 0.1").holds(scores).all()
    assert not Predicate.parse("x > 0.1").holds(scores).any()
