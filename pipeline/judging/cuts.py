"""Agreement of scores with people, and the cut of a score that has a wanted precision.

These are functions of arrays: the scores and deciles of n pairs, people's labels (0 to 100).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DECILES = 10
ENOUGH = 20
"""The fewest references for an interval of a correlation, and the fewest judged pairs for a
recommended cut or a median; judging.md says why."""
_Z = 1.959963984540054  # of the normal distribution, for a two-sided interval of 95%

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The best deciles of a score."""

    score: str
    deciles: tuple[int, ...]
    wanted: float  # precision
    reached: bool
    """Whether enough pairs are judged, and the Wilson interval begins at `wanted` or above."""
    rows: int  # in the deciles
    judged: int
    good: int  # judged pairs that are good
    precision: float  # their share
    wilson: Interval


def recommend(
    deciles: Mapping[str, NDArray[np.int64]],
    higher_is_better: Mapping[str, bool],
    good: NDArray[np.bool_],
    rows: Mapping[str, Sequence[int]],
    wanted: float,
) -> Cut | None:
    """The cut that keeps most rows while its Wilson interval begins at `wanted` or above.

    If several cuts keep the same percentage of all rows, the one with the highest precision is
    returned; if no interval begins at `wanted`, the cut with the interval that begins highest; None
    if no score has a judged pair in its best decile with rows.

    Args:
        deciles: 0 to 9 by each score, int [n].
        good: bool [n].
        rows: the run's rows in each decile of each score, from decile 0.
    """
    total = max((sum(of) for of in rows.values()), default=0)

    def rank(cut: Cut) -> tuple[bool, float, float]:
        percent = 100 * cut.rows // max(total, 1)
        return (True, percent, cut.precision) if cut.reached else (False, cut.wilson[0], 0)

    cuts = (
        cut
        for name, values in deciles.items()
        for cut in _cuts(name, values, higher_is_better[name], good, rows[name], wanted)
    )
    return max(cuts, key=rank, default=None)


def _cuts(
    score: str,
    deciles: NDArray[np.int64],
    highest: bool,
    good: NDArray[np.bool_],
    rows: Sequence[int],
    wanted: float,
) -> Iterable[Cut]:
    """The cuts of the best 1, 2, … deciles of a score, up to the first with rows, but no judged
    pair."""
    judged, right = (np.bincount(of, minlength=DECILES) for of in (deciles, deciles[good]))
    order = range(DECILES)[:: -1 if highest else 1]
    for size, last in enumerate(order, 1):
        if rows[last] and not judged[last]:
            return
        chosen = sorted(order[:size])
        pairs, found = int(judged[chosen].sum()), int(right[chosen].sum())
        if pairs:
            low, high = wilson(found, pairs)
            yield Cut(
                score=score,
                deciles=tuple(chosen),
                wanted=wanted,
                reached=low >= wanted and pairs >= ENOUGH,
                rows=sum(rows[decile] for decile in chosen),
                judged=pairs,
                good=found,
                precision=found / pairs,
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
    from scipy.stats import rankdata  # late: it takes most of a second

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
