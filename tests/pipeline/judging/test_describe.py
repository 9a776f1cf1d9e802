"""Agreement in words, of scores with judgments and of judges with each other."""

from itertools import permutations, product

import numpy as np

from paraloom.pipeline.judging.describe import (
    alpha,
    by_agreement,
    describe_judges,
)
from paraloom.pipeline.judging.judgments import Judgment
from paraloom.pipeline.judging.record import ScoreAgreement


def score(spearman: float | None, *, higher: bool = True) -> ScoreAgreement:
    none = [0] * 10
    return ScoreAgreement(
        spearman=spearman,
        interval=None,
        good=none,
        judged=none,
        rows=none,
        higher_is_better=higher,
    )


def test_the_score_that_agrees_most_is_first_whichever_way_it_goes() -> None:
    scores = {
        "low": score(0.2),
        "opposite": score(-0.9),
        "distance": score(-0.7, higher=False),
        "none": score(None),
        "high": score(0.5),
    }
    assert list(by_agreement(scores)) == ["distance", "high", "low", "none", "opposite"]


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
