"""Agreement in words, and the curves that the report draws of it."""

import numpy as np
import pytest

from paraloom.models.agreement.precision import wilson
from paraloom.pipeline.judging.describe import (
    by_agreement,
    counts_line,
    cumulative_shares,
    cut_in_words,
    cut_lines,
    decile_shares,
    interval_in_words,
    number_in_words,
    select_lines,
)
from paraloom.pipeline.judging.record import AgreementRecord, CutResult, ScoreAgreement


def score(spearman: float | None, *, higher: bool = True) -> ScoreAgreement:
    return ScoreAgreement(
        spearman=spearman,
        interval=None,
        good=[0, 1, *[0] * 7, 3],
        judged=[0, 4, *[0] * 7, 5],
        rows=[10, 20, *[0] * 6, 30, 40],
        precision=[0.6, 0.5, *[None] * 8],
        higher_is_better=higher,
    )


def cut(**values: object) -> CutResult:
    made = {
        "score": "unigram_f1",
        "deciles": [7, 8, 9],
        "wanted": 0.9,
        "reached": True,
        "rows": 300,
        "judged": 1040,
        "good": 990,
        "precision": 0.95,
        "wilson": (0.9, 0.98),
        "expected": (0.85, 0.99),
        "chance": 0.75,
    }
    return CutResult.model_validate({**made, **values})


def test_the_score_that_agrees_most_is_first_whichever_way_it_goes() -> None:
    scores = {
        "low": score(0.2),
        "opposite": score(-0.9),
        "distance": score(-0.7, higher=False),
        "none": score(None),
        "high": score(0.5),
    }
    assert list(by_agreement(scores)) == ["distance", "high", "low", "none", "opposite"]


def test_shares_begin_with_the_best_decile() -> None:
    assert cumulative_shares(score(1.0)) == [(0.4, 0.6), (0.7, 0.5)]
    assert cumulative_shares(score(1.0, higher=False)) == [(0.1, 0.6), (0.3, 0.5)]


def test_deciles_without_judged_pairs_have_no_share() -> None:
    found = decile_shares(score(1.0))
    assert [(decile, share) for decile, share, _, _ in found] == [(1, 0.25), (9, 0.6)]
    for _, share, low, high in found:
        judged = np.array(4.0 if share == 0.25 else 5.0)
        assert (low, high) == pytest.approx(tuple(map(float, wilson(np.array(share), judged))))


def test_zero_is_a_number_and_no_value_is_none() -> None:
    assert [number_in_words(value) for value in (None, 0.0)] == ["undefined", "0.00"]
    intervals = (None, (0.0, 0.3), (-0.3, 0.1))
    words = ["no interval", "0.00–0.30", "−0.30 to 0.10"]
    assert [interval_in_words(interval) for interval in intervals] == words


def test_a_cut_in_sentences() -> None:
    first, second, third = cut_lines(cut(), 1200)
    assert first == "Precision 0.9: deciles 7–9 of unigram_f1; 300 of 1,200 pairs (25%)."
    assert second == (
        "Of the 1,040 judged pairs in it, 990 are good; weighted, a share of 0.95 (95% by Wilson, "
        "as if all pairs were independent: 0.90–0.98)."
    )
    assert third == (
        "To expect on references that nobody has judged: 0.85–0.99; at least 0.9 in 75% of "
        "resamples."
    )
    first, _, third = cut_lines(cut(reached=False, deciles=[9], expected=None), 300)
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
        alpha=-0.5, changed=3, gone=4, scores={}, cuts=[],
    )  # fmt: skip
    assert counts_line(found) == (
        "5,234 judged pairs of 1,056 references by 2 judges (Krippendorff's alpha −0.50); 1,078 "
        "are good (label at least 70 of 100); not counted: 1 pair of equal sides, 3 judgments of "
        "texts that have changed, 4 judgments of pairs that the run does not have"
    )
    all_counted = found.model_copy(
        update={"copies": 0, "changed": 0, "gone": 0, "judges": 1, "alpha": 0.0}
    )
    assert counts_line(all_counted) == (
        "5,234 judged pairs of 1,056 references by 1 judge (Krippendorff's alpha 0.00); 1,078 are "
        "good (label at least 70 of 100)"
    )
