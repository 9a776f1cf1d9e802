"""Agreement in words, of scores with judgments and of judges with each other."""

from itertools import permutations, product
from typing import Any

import numpy as np

from paraloom.pipeline.judging.cuts import Cut
from paraloom.pipeline.judging.describe import (
    alpha,
    by_agreement,
    counts_line,
    cut_in_words,
    cut_lines,
    describe_judges,
    interval_in_words,
    number_in_words,
    select_lines,
)
from paraloom.pipeline.judging.judgments import Judgment
from paraloom.pipeline.judging.record import AgreementRecord, ScoreAgreement


def score(spearman: float | None, *, higher: bool = True) -> ScoreAgreement:
    return ScoreAgreement(
        spearman=spearman,
        interval=None,
        good=[0, 1, *[0] * 7, 3],
        judged=[0, 4, *[0] * 7, 5],
        rows=[10, 20, *[0] * 6, 30, 40],
        higher_is_better=higher,
    )


def cut(**values: Any) -> Cut:
    made: dict[str, Any] = {
        "score": "unigram_f1", "deciles": (7, 8, 9), "wanted": 0.9, "reached": True, "rows": 300,
        "judged": 1040, "good": 990, "precision": 0.95, "wilson": (0.9, 0.98),
        "expected": (0.85, 0.99), "chance": 0.75,
    }  # fmt: skip
    return Cut(**{**made, **values})


def test_the_score_that_agrees_most_is_first_whichever_way_it_goes() -> None:
    scores = {
        "low": score(0.2),
        "opposite": score(-0.9),
        "distance": score(-0.7, higher=False),
        "none": score(None),
        "high": score(0.5),
    }
    assert list(by_agreement(scores)) == ["distance", "high", "low", "none", "opposite"]


def test_zero_is_a_number_and_no_value_is_none() -> None:
    assert [number_in_words(value) for value in (None, 0.0)] == ["undefined", "0.00"]
    intervals = (None, (0.0, 0.3), (-0.3, 0.1))
    words = ["no interval", "0.00–0.30", "−0.30 to 0.10"]
    assert [interval_in_words(interval) for interval in intervals] == words


def test_a_cut_in_sentences() -> None:
    assert cut_lines(cut(), 1200) == [
        "Precision 0.9: deciles 7–9 of unigram_f1; 300 of 1,200 pairs (25%).",
        "Of the 1,040 judged pairs in it, 990 are good; weighted, a share of 0.95 (95% by Wilson: "
        "0.90–0.98).",
        "To expect on references that nobody has judged: 0.85–0.99; at least 0.9 in 75% of "
        "resamples.",
    ]
    first, _, third = cut_lines(cut(reached=False, deciles=(9,), expected=None), 300)
    assert first == (
        "Precision 0.9: no cut is sure to have it; the best is decile 9 of unigram_f1; 300 of 300 "
        "pairs (100%)."
    )
    assert third.startswith("There are too few references")
    words = "deciles 7–9 of unigram_f1 with 0.95 (0.90–0.98) of 1,040 judged pairs"
    assert cut_in_words(cut()) == words
    lines = "select:  # precision 0.9\n  by: unigram_f1\n  deciles: [7, 8, 9]"
    assert select_lines(cut()) == lines
    assert select_lines(cut(), ["a <= 1", "b >= 2"]) == f"{lines}\n  where: [a <= 1, b >= 2]"


def test_what_is_not_counted_is_said() -> None:
    found = AgreementRecord(
        pairs=5234, references=1056, rows=9, good=70, good_pairs=1078, copies=1, judges=2,
        alpha=-0.5, gone=4, outside=3, where=["a <= 1"], scores={}, cuts=[],
    )  # fmt: skip
    assert counts_line(found) == (
        "5,234 judged pairs of 1,056 references with a <= 1, 2 judges (Krippendorff's alpha "
        "−0.50); 1,078 are good (label at least 70 of 100); pairs not counted: 1 of equal sides, "
        "3 that do not meet the condition, 4 that the run does not have"
    )
    counted = {"copies": 0, "gone": 0, "outside": 0, "where": [], "judges": 1, "alpha": 0.0}
    assert counts_line(found.model_copy(update=counted)) == (
        "5,234 judged pairs of 1,056 references, 1 judge (Krippendorff's alpha 0.00); 1,078 are "
        "good (label at least 70 of 100)"
    )


SCORES = {
    "a": [10, 20, None, 70, 100, 5],
    "b": [15, 20, 30, 60, None, 95],
    "c": [None, 25, None, 80, 90, 0],
}


def judgments(scores: dict[str, list[int | None]]) -> list[Judgment]:
    return [
        Judgment(judge=judge, id=f"{i}", candidate=None, reference="r", translation="t", score=s)
        for judge, values in scores.items()
        for i, s in enumerate(values)
        if s is not None
    ]


def test_alpha_is_its_definition() -> None:
    """1 − observed / expected disagreement (Krippendorff 2004), of squared differences."""
    units = [[v for v in unit if v is not None] for unit in zip(*SCORES.values(), strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    observed = sum(
        sum((a - b) ** 2 for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(values)
    expected = sum((a - b) ** 2 for a, b in product(values, repeat=2))
    defined = 1 - observed / (expected / (len(values) * (len(values) - 1)))
    np.testing.assert_allclose(alpha(judgments(SCORES)) or 0, defined, rtol=1e-12)


def test_alpha_that_is_not_defined() -> None:
    found: list[dict[str, list[int | None]]] = [{"a": [1, 2]}, {"a": [3], "b": [3]}]
    for scores in (*found, {"a": [1, None], "b": [None, 2]}):
        assert alpha(judgments(scores)) is None
    first, second, *others = judgments({"a": [1, 2], "b": [1, 2]})
    assert alpha([first, second, *others]) == 1
    for change in ({"id": "x"}, {"candidate": 1}, {"reference": "x"}, {"translation": "x"}):
        changed = [found.model_copy(update=change) for found in others]  # judged another pair
        assert alpha([first, second, *changed]) is None


def test_the_lines_of_judges() -> None:
    assert describe_judges([]) == []
    assert describe_judges(judgments({"a": [1]})) == ["pairs judged by a: 1"]
    *lines, last = describe_judges(judgments(SCORES)[::-1])
    assert lines == [f"pairs judged by {name}" for name in ("a: 5", "b: 5", "c: 4")]
    value = f"{alpha(judgments(SCORES)):.2f}"
    assert last == f"agreement on 5 pairs of several judges: Krippendorff's alpha {value}"
