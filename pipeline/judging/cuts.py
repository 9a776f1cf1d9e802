"""Records of the agreement between scores and labels, and the search for cuts by precision."""

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
"""The least number of judged references or pairs for an interval, a cut or a median."""
_Z = 1.959963984540054  # quantile of the normal distribution for a two-sided 95% interval

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The best deciles of a score, and the precision of their pairs."""

    score: str
    deciles: tuple[int, ...]
    wanted: float  # wanted precision
    reached: bool
    """Whether ENOUGH pairs are judged and the lower end of `wilson` is at least `wanted`."""
    rows: int  # number of rows in the deciles
    judged: int  # number of judged pairs
    good: int  # number of judged pairs that are good
    precision: float  # share of good pairs among the judged pairs
    wilson: Interval  # 95% interval of the precision


class ScoreAgreement(Lenient):
    """The agreement of one score with the labels. Lists have one number for each decile."""

    spearman: float | None  # None for constant scores or labels, and for fewer than two pairs
    interval: Interval | None  # 95%
    good: list[int]  # number of good pairs
    judged: list[int]  # number of judged pairs
    rows: list[int]  # number of pairs with different sides that meet the conditions
    higher_is_better: bool = True


class AgreementRecord(Lenient):
    """The agreement of scores with the labels of judged pairs."""

    pairs: int  # number of judged pairs that count
    references: int  # number of their distinct references
    rows: int  # number of pairs of the run or file with different sides that meet the conditions
    good: float  # least label of a good pair, from 0 to 100
    good_pairs: int
    copies: int = 0  # number of judged pairs with equal sides, which do not count
    judges: int = 0
    alpha: float | None = None  # Krippendorff's alpha between the judges
    judgments: int = 0
    gone: int = 0  # number of judgments whose texts the run does not contain
    where: list[str] = Field(default=[])  # conditions of --where
    outside: int = 0  # number of judged pairs that do not meet the conditions
    scores: dict[str, ScoreAgreement]
    cuts: list[Cut]  # one for each wanted precision; empty if no cut can be measured


class JudgedRecord(StageRecord, stage="judged"):
    """The result of `select.by: judged`."""

    agreement: AgreementRecord

    @property
    def chosen(self) -> Cut:
        """The cut that selects pairs."""
        return self.agreement.cuts[0]


def recommend(scores: Mapping[str, ScoreAgreement], wanted: float) -> Cut | None:
    """Return the cut that keeps the most rows among the cuts that reach the `wanted` precision.

    Among cuts that keep the same whole percentage of all rows, return the cut with the highest
    precision. If no cut reaches the precision, return the cut whose interval has the highest lower
    end. If no cut can be measured, return None.
    """
    total = max((sum(of.rows) for of in scores.values()), default=0)

    def rank(cut: Cut) -> tuple[bool, float, float]:
        percent = 100 * cut.rows // max(total, 1)
        return (True, percent, cut.precision) if cut.reached else (False, cut.wilson[0], 0)

    cuts = (cut for name, of in scores.items() for cut in _cuts(name, of, wanted))
    return max(cuts, key=rank, default=None)


def _cuts(score: str, of: ScoreAgreement, wanted: float) -> Iterable[Cut]:
    """Yield the cuts with the best 1, 2, … deciles of a score.

    Stop at the first decile that contains rows but no judged pair.
    """
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
    """Compute Spearman's correlation of each score [n] with the labels [n], and its 95% interval.

    The interval follows Bonett & Wright (2000). Its sample size is the number of references,
    because pairs of one reference are not independent. The correlation of constant values is None.
    With fewer references than ENOUGH, the interval is None.
    """
    if len(labels) < 2:
        return dict.fromkeys(scores, (None, None))
    from scipy.stats import rankdata  # imported here, because the import takes most of a second

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
    """Return the 95% interval of a correlation × 100, by Fisher's transformation.

    Return None for fewer pairs than ENOUGH, and for ±100.
    """
    if pairs < ENOUGH or abs(pearson) >= 100:
        return None
    middle, half = np.arctanh(pearson / 100), _Z / np.sqrt(pairs - 3)
    return float(100 * np.tanh(middle - half)), float(100 * np.tanh(middle + half))


def wilson(good: float, judged: int) -> Interval:
    """Return Wilson's 95% interval (Wilson 1927) of the share of good pairs."""
    share, spread = good / judged, _Z**2 / judged
    middle = share + spread / 2
    half = _Z * math.sqrt(share * (1 - share) / judged + spread / (4 * judged))
    return (middle - half) / (1 + spread), (middle + half) / (1 + spread)
