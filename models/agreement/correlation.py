"""Spearman's correlation of scores with labels, and its interval by bootstrap over references."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paraloom.models.agreement.resampling import (
    RESAMPLES,
    Floats,
    numbered,
    percentile_interval,
    resamples,
)


class RankCorrelation(NamedTuple):
    """Spearman's rho and its 95% interval; None where undefined (constant values)."""

    value: float | None
    interval: tuple[float, float] | None


def spearman(
    scores: Mapping[str, NDArray[Any]],
    labels: NDArray[Any],
    references: NDArray[Any],
    *,
    count: int = RESAMPLES,
    seed: int = 1,
) -> dict[str, RankCorrelation]:
    """The correlation of each score [n] with the labels [n]; `count` resamples of references.

    The interval is the one to expect with other references.
    """
    if not len(labels):
        return dict.fromkeys(scores, RankCorrelation(None, None))
    columns = np.column_stack([*scores.values(), labels])
    group = numbered(references)
    drawn = np.array(
        [
            _with_the_last(columns.repeat(times[group].astype(int), axis=0))
            for block in resamples(int(group.max()) + 1, count, seed)
            for times in block
        ]
    )  # [count, scores]
    return {
        name: RankCorrelation(
            float(value) if np.isfinite(value) else None, percentile_interval(of_name)
        )
        for name, value, of_name in zip(scores, _with_the_last(columns), drawn.T, strict=True)
    }


def _with_the_last(columns: Floats) -> Floats:
    """Spearman's rho of every column but the last with the last; NaN of constant ones."""
    from scipy.stats import rankdata  # late: it takes most of a second

    ranks = rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.linalg.norm(ranks, axis=0)
    with np.errstate(invalid="ignore"):
        rho = ranks[:, -1] @ ranks[:, :-1] / (norms[-1] * norms[:-1])
    return np.asarray(rho.clip(-1, 1))
