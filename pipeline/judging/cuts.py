"""The agreement of scores with people, its records, and the cut that reaches a wanted precision."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from paraloom.pipeline.run.records import Lenient, StageRecord

DECILES = 10
ENOUGH = 20
"""The fewest references for an interval of a correlation, and the fewest judged pairs for a
recommended cut or a median; judging.md says why."""
_Z = 1.959963984540054  # normal quantile for a two-sided 95% interval

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The best deciles of a score."""

    score: str
    deciles: tuple[int, ...]
    wanted: float  # wanted precision
    reached: bool
    """Whether enough pairs are judged, and the Wilson interval begins at `wanted` or above."""
    rows: int  # number of rows in the deciles
    judged: int
    good: int  # judged pairs that are good
    precision: float  # share of good pairs among the judged pairs
    wilson: Interval


class ScoreAgreement(Lenient):
    """The agreement of one score with the labels."""

    spearman: float | None  # None if a side is constant
    interval: Interval | None  # 95%
    good: list[int]  # good pairs in each decile, 0 the lowest
    judged: list[int]
    rows: list[int]  # pairs of the run or of the file in each decile, without equal sides
    higher_is_better: bool = True


class AgreementRecord(Lenient):
    """The agreement of scores with the labels of judged pairs."""

    pairs: int  # judged pairs that are counted
    references: int
    rows: int  # all pairs of the run or of the file, without equal sides
    good: float  # least label of a good pair, out of 100
    good_pairs: int
    copies: int = 0  # judged pairs of equal sides, not counted
    judges: int = 0
    alpha: float | None = None  # Krippendorff's, between the judges
    judgments: int = 0
    gone: int = 0  # judgments of pairs that the run lacks, or whose texts have changed
    where: list[str] = Field(default=[])  # conditions on the pairs that are counted
    outside: int = 0  # judged pairs that do not meet these conditions
    scores: dict[str, ScoreAgreement]
    cuts: list[Cut]  # one for each wanted precision; empty if no cut can be measured


class JudgedRecord(StageRecord, stage="judged"):
    """The scorer and the deciles that `select.by: judged` found."""

    agreement: AgreementRecord

    @property
    def chosen(self) -> Cut:
        """The cut whose deciles are selected."""
        return self.agreement.cuts[0]


def recommend(scores: Mapping[str, ScoreAgreement], wanted: float) -> Cut | None:
    """The cut that keeps most rows among the cuts that reach `wanted` (see `Cut.reached`).

    If several cuts keep the same percentage of all rows, the cut with the highest precision is
    returned. If no cut reaches `wanted`, the cut whose interval begins highest is returned; if no
    score has a judged pair in its best decile with rows, None.
    """
    total = max((sum(of.rows) for of in scores.values()), default=0)

    def rank(cut: Cut) -> tuple[bool, float, float]:
        percent = 100 * cut.rows // max(total, 1)
        return (True, percent, cut.precision) if cut.reached else (False, cut.wilson[0], 0)

    cuts = (cut for name, of in scores.items() for cut in _cuts(name, of, wanted))
    return max(cuts, key=rank, default=None)


def _cuts(score: str, of: ScoreAgreement, wanted: float) -> Iterable[Cut]:
    """The cuts with the best 1, 2, … deciles of a score, up to the first decile that has rows, but
    no judged pair."""
    order = range(DECILES)[:: -1 if of.higher_is_better else 1]
    for size, last in enumerate(order, 1):
        if of.rows[last] and not of.judged[last]:
            return
        chosen = sorted(order[:size])
        rows, judged, good = (sum(n[k] for k in chosen) for n in (of.rows, of.judged, of.good))
        if judged:
            low, high = wilson(good, judged)
            yield Cut(
                score=score,
                deciles=tuple(chosen),
                wanted=wanted,
                reached=low >= wanted and judged >= ENOUGH,
                rows=rows,
                judged=judged,
                good=good,
                precision=good / judged,
                wilson=(low, high),
            )


def spearman(
    scores: Mapping[str, NDArray[Any]], labels: NDArray[Any], references: int
) -> dict[str, tuple[float | None, Interval | None]]:
    """The correlation of each score [n] with the labels [n], and its 95% interval (Bonett & Wright
    2000); None where undefined (constant values, fewer references than ENOUGH).

    Pairs of one reference resemble each other, so the interval counts references, not pairs.
    """
    if len(labels) < 2:
        return dict.fromkeys(scores, (None, None))
    from scipy.stats import rankdata  # imported late, since it takes most of a second

    ranks = rankdata(np.column_stack([*scores.values(), labels]), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.corrcoef(ranks, rowvar=False)[-1, :-1].clip(-1, 1)
        half = _Z * np.sqrt((1 + values**2 / 2) / max(references - 3, 1))
        low, high = (np.tanh(np.arctanh(values) + side * half) for side in (-1, 1))
    return {
        name: (float(value), (float(a), float(b)) if references >= ENOUGH else None)
        if np.isfinite(value)
        else (None, None)
        for name, value, a, b in zip(scores, values, low, high, strict=True)
    }


def pearson_interval(pearson: float, pairs: int) -> Interval | None:
    """The 95% interval of a correlation × 100 by Fisher's transformation; None for few pairs."""
    if pairs < ENOUGH or abs(pearson) >= 100:
        return None
    middle, half = np.arctanh(pearson / 100), _Z / np.sqrt(pairs - 3)
    return float(100 * np.tanh(middle - half)), float(100 * np.tanh(middle + half))


def wilson(good: float, judged: int) -> Interval:
    """Wilson's 95% interval (Wilson 1927) of the share of good pairs."""
    share, spread = good / judged, _Z**2 / judged
    middle = share + spread / 2
    half = _Z * math.sqrt(share * (1 - share) / judged + spread / (4 * judged))
    return (middle - half) / (1 + spread), (middle + half) / (1 + spread)
