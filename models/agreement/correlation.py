"""Spearman's correlation of scores with labels, and its interval by bootstrap over references."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paraloom.models.agreement.resampling import (
    RESAMPLES,
    Floats,
    Ints,
    numbered,
    percentile_interval,
    resamples,
)


class Correlation(NamedTuple):
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
) -> dict[str, Correlation]:
    """The correlation of each score [n] with the labels [n].

    Args:
        references: of each pair [n]; the interval is that of other references.
        count: of resamples.
    """
    group = numbered(references)
    weights = np.ones((1, len(labels)))
    ranked = {name: _Ranking(np.asarray(values)) for name, values in scores.items()}
    of_labels = _Ranking(np.asarray(labels))
    values = {n: float(_correlate(r, of_labels, weights)[0]) for n, r in ranked.items()}
    drawn: dict[str, list[Floats]] = {name: [] for name in scores}
    for times in resamples(int(group.max()) + 1, count, seed) if len(group) else ():
        weights = times[:, group]
        right = of_labels.ranks(weights)
        for name, ranking in ranked.items():
            drawn[name].append(_pearson(ranking.ranks(weights), right, weights))
    return {
        name: Correlation(
            value if np.isfinite(value) else None,
            percentile_interval(np.concatenate(drawn[name])) if drawn[name] else None,
        )
        for name, value in values.items()
    }


class _Ranking:
    """Mean ranks of values in which every row counts as often as its weight."""

    def __init__(self, values: NDArray[Any]) -> None:
        _, inverse = np.unique(values, return_inverse=True)
        self.inverse: Ints = inverse.reshape(-1)
        self.order = np.argsort(self.inverse, kind="stable")
        self.starts = np.flatnonzero(np.diff(self.inverse[self.order], prepend=-1))

    def ranks(self, weights: Floats) -> Floats:
        """Ranks [b, n] for weights [b, n]; rows of equal value share the mean of their ranks."""
        equal = np.add.reduceat(weights[:, self.order], self.starts, axis=1)
        means = np.cumsum(equal, axis=1) - (equal - 1) / 2
        return np.take(means, self.inverse, axis=1)


def _correlate(left: _Ranking, right: _Ranking, weights: Floats) -> Floats:
    if weights.shape[1] == 0:
        return np.full(len(weights), np.nan)
    return _pearson(left.ranks(weights), right.ranks(weights), weights)


def _pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    total = weights.sum(1, keepdims=True)
    x = x - (weights * x).sum(1, keepdims=True) / total
    y = y - (weights * y).sum(1, keepdims=True) / total
    weighted = weights * x
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.einsum("bn,bn->b", weighted, y) / np.sqrt(
            np.einsum("bn,bn->b", weighted, x) * np.einsum("bn,bn->b", weights * y, y)
        )
    return np.asarray(np.clip(found, -1, 1))
