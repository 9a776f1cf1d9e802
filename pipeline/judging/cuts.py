"""Records of the agreement between scores and labels, and the choice of deciles by precision."""

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
"""With fewer references, `ScoreAgreement.interval` is None. With fewer judged pairs, no `Cut` is
`reached`."""
_Z = 1.959963984540054  # quantile of the normal distribution for a two-sided 95% interval

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The best deciles of a score. `rows`, `judged` and `good` count pairs in these deciles."""

    score: str
    deciles: tuple[int, ...]
    wanted: float  # the precision to reach
    reached: bool
    """Whether at least ENOUGH pairs are judged and the lower end of `wilson` reaches `wanted`."""
    rows: int
    judged: int
    good: int
    precision: float  # good / judged
    wilson: Interval  # 95% interval of the precision


class ScoreAgreement(Lenient):
    """The agreement of a score with the labels. Lists contain the number of pairs by decile."""

    spearman: float | None  # None if undefined
    interval: Interval | None  # 95% interval of `spearman`
    good: list[int]
    judged: list[int]
    rows: list[int]  # pairs with different sides that meet the conditions
    higher_is_better: bool = True


class AgreementRecord(Lenient):
    """The agreement of scores with the labels of judged pairs. Integers are counts."""

    pairs: int  # judged pairs that count
    references: int  # distinct references of these pairs
    rows: int  # pairs that meet the conditions and have different sides, judged or not
    good: float  # least label of a good pair, from 0 to 100
    good_pairs: int
    copies: int = 0  # judged pairs with equal sides, which do not count
    judges: int = 0
    alpha: float | None = None  # Krippendorff's alpha between the judges
    judgments: int = 0
    gone: int = 0  # judgments of texts that are not in the run
    where: list[str] = Field(default=[])
    outside: int = 0  # judged pairs that do not meet the conditions
    scores: dict[str, ScoreAgreement]
    cuts: list[Cut]  # one cut for each wanted precision; empty if no cut contains judged pairs


class JudgedRecord(StageRecord, stage="judged"):
    """The result of `select.by: judged`."""

    agreement: AgreementRecord

    @property
    def chosen(self) -> Cut:
        """The cut that selects pairs."""
        return self.agreement.cuts[0]


def recommend(scores: Mapping[str, ScoreAgreement], wanted: float) -> Cut | None:
    """Among the cuts that reach the precision `wanted`, return the cut with the most rows.

    Rows are compared in whole percent of all rows. Among equal cuts, the most precise cut is
    returned. If no cut reaches the precision, the cut whose interval has the highest lower end is
    returned. If no cut contains judged pairs, the result is None.
    """
    total = max((sum(of.rows) for of in scores.values()), default=0)

    def rank(cut: Cut) -> tuple[bool, float, float]:
        percent = 100 * cut.rows // max(total, 1)
        return (True, percent, cut.precision) if cut.reached else (False, cut.wilson[0], 0)

    cuts = (cut for name, of in scores.items() for cut in _cuts(name, of, wanted))
    return max(cuts, key=rank, default=None)


def _cuts(score: str, of: ScoreAgreement, wanted: float) -> Iterable[Cut]:
    """Yield cuts with the best 1, 2, … deciles, until a decile has rows but no judged pair."""
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

    The interval follows Bonett & Wright (2000). The number of references is used as the sample
    size, because pairs of one reference are not independent. An undefined value is None. With fewer
    than ENOUGH references, the interval is None.
    """
    if len(labels) < 2:
        return dict.fromkeys(scores, (None, None))
    from scipy.stats import rankdata  # a slow import

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
    """Return the 95% interval of a correlation × 100 by Fisher's transformation.

    The result is None for fewer than ENOUGH pairs and for a correlation of ±100.
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
    return max((middle - half) / (1 + spread), 0.0), min((middle + half) / (1 + spread), 1.0)
