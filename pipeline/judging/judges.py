"""How many pairs each judge judged, and how far the judges agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from paraloom.pipeline.judging.judgments import Judgment


def describe_judges(judgments: Sequence[Judgment]) -> list[str]:
    """Lines to print: the judgments of each judge, and the agreement of several."""
    counts = Counter(judgment.judge for judgment in judgments)
    lines = [f"pairs judged by {judge}: {count:,}" for judge, count in sorted(counts.items())]
    if len(counts) < 2:
        return lines
    shared = sum(n > 1 for n in Counter(map(_pair, judgments)).values())
    alphas = {name: alpha(judgments, name) for name in ("score", "fluency")}
    values = ", ".join(
        f"{name} {'undefined' if value is None else f'{value:.2f}'}"
        for name, value in alphas.items()
    )
    return [
        *lines,
        f"agreement on {shared:,} pairs of several judges (Krippendorff's alpha): {values}",
    ]


def alpha(judgments: Sequence[Judgment], of: Literal["score", "fluency"] = "score") -> float | None:
    """Krippendorff's alpha over the pairs that at least two judges judged.

    1 is perfect agreement, 0 what chance gives; scores have interval level, fluency ordinal. None
    if it is not defined: no pair has two judges, or all values are the same.
    """
    pairs = {pair: i for i, pair in enumerate(dict.fromkeys(map(_pair, judgments)))}
    judges = {judge: i for i, judge in enumerate(sorted({found.judge for found in judgments}))}
    values = np.full((len(judges), len(pairs)), np.nan)
    for found in judgments:
        value = found.score if of == "score" else found.fluency
        values[judges[found.judge], pairs[_pair(found)]] = np.nan if value is None else value
    shared = values[:, (~np.isnan(values)).sum(axis=0) > 1]
    if len(np.unique(shared[~np.isnan(shared)])) < 2:
        return None
    level: Literal["interval", "ordinal"] = "interval" if of == "score" else "ordinal"
    import krippendorff  # an extra

    return float(krippendorff.alpha(reliability_data=shared, level_of_measurement=level))


def _pair(judgment: Judgment) -> tuple[str, int | None, str, str]:
    return judgment.id, judgment.candidate, judgment.reference, judgment.translation
