"""Krippendorff's alpha against its definition, and the lines printed of judges."""

from collections import Counter
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np

from paraloom.pipeline.judging.describe import alpha, describe_judges
from paraloom.pipeline.judging.judgments import Judgment

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


def defined(units: list[list[int]], distance: Callable[[int, int], float]) -> float:
    """1 − observed / expected disagreement (Krippendorff 2004)."""
    values = [value for unit in units for value in unit]
    observed = sum(
        sum(distance(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(values)
    pairs = list(product(range(len(values)), repeat=2))
    expected = sum(distance(values[i], values[j]) for i, j in pairs if i != j)
    return 1 - observed / (expected / (len(values) * (len(values) - 1)))


def test_alpha_is_its_definition() -> None:
    """Of squared differences."""
    units = [[v for v in unit if v is not None] for unit in zip(*SCORES.values(), strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    found = alpha(judgments(SCORES))
    assert found is not None
    np.testing.assert_allclose(found, defined(units, lambda a, b: (a - b) ** 2), rtol=1e-12)


def test_alpha_of_fluency_is_that_of_ranks() -> None:
    """Two values are as far apart as there are values between them, half of the ends included."""
    units = [[2, 2], [2, 2], [2, 1], [2, 2], [0, 1], [2, 2], [0, 0]]
    values = Counter(value for unit in units for value in unit)

    def distance(a: int, b: int) -> float:
        low, high = sorted((a, b))
        between = sum(values[value] for value in range(low, high + 1))
        return (between - (values[low] + values[high]) / 2) ** 2

    scores: dict[str, list[int | None]] = {"a": [50] * len(units), "b": [50] * len(units)}
    fluencies = [unit[judge] for judge in (0, 1) for unit in units]
    given = [
        j.model_copy(update={"fluency": f})
        for j, f in zip(judgments(scores), fluencies, strict=True)
    ]
    found = alpha(given, "fluency")
    assert found is not None
    np.testing.assert_allclose(found, defined(units, distance), rtol=1e-12)


def test_alpha_that_is_not_defined() -> None:
    found: list[dict[str, list[int | None]]] = [{"a": [1, 2]}, {"a": [3], "b": [3]}]
    for scores in (*found, {"a": [1, None], "b": [None, 2]}):
        assert alpha(judgments(scores)) is None


def test_judges_of_other_texts_judged_another_pair() -> None:
    first, second, *others = judgments({"a": [1, 2], "b": [1, 2]})
    assert alpha([first, second, *others]) == 1
    changes: list[dict[str, Any]] = [{"id": "x"}, {"candidate": 1}, {"reference": "x"}]
    for change in (*changes, {"translation": "x"}):
        changed = (found.model_copy(update=change) for found in others)
        assert alpha([first, second, *changed]) is None


def test_the_lines() -> None:
    assert describe_judges([]) == []
    assert describe_judges(judgments({"a": [1]})) == ["pairs judged by a: 1"]
    lines = describe_judges(judgments(SCORES)[::-1])
    assert lines[:3] == [f"pairs judged by {name}" for name in ("a: 5", "b: 5", "c: 4")]
    assert lines[3].startswith("agreement on 5 pairs of several judges")
    assert lines[3].endswith(f"score {alpha(judgments(SCORES)):.2f}, fluency undefined")
    agree = [j.model_copy(update={"fluency": 2 * (j.id > "2")}) for j in judgments(SCORES)]
    assert describe_judges(agree)[3].endswith("fluency 1.00")
