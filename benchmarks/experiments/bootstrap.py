"""Arrays [1 + RESAMPLES]: a figure × 100 on test examples, then on samples with replacement.

The samples of a data set are the same for every encoder, so that differences are paired.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from paraloom.models.embeddings.applications.evaluation import correlation
from paraloom.models.embeddings.datasets.similarity import LabelledPairs

RESAMPLES = 200  # so the standard deviation over samples is known to 5%

Floats = NDArray[np.float64]


class Resampled(NamedTuple):
    """Pearson's r and Spearman's ρ; ranks are always computed over all examples."""

    pearson: Floats
    spearman: Floats


def resampled(predicted: NDArray[np.floating], pairs: LabelledPairs) -> Resampled:
    """The correlation of the pairs' predicted scores with their labels."""
    return correlations(predicted, pairs.scores, f"{pairs.group} {pairs.name}")


def correlations(
    predicted: NDArray[np.floating], labels: NDArray[np.floating], data: str
) -> Resampled:
    """The correlation of n predictions with the labels."""
    weights = _weights(data, len(labels))
    x, y = predicted.astype(float), labels.astype(float)
    r, rho = correlation(x, y)
    samples, of_ranks = _pearson(x, y, weights), _pearson(rankdata(x), rankdata(y), weights)
    return Resampled(np.append(r, samples).round(4), np.append(rho, of_ranks).round(4))


def share(right: NDArray[np.bool_], data: str) -> Floats:
    """The share of n examples that are right."""
    return 100 * np.append(right.mean(), _weights(data, len(right)) @ right)


def f1(predicted: NDArray[Any], labels: NDArray[Any], positive: str, data: str) -> Floats:
    """F1 of the predictions of the class `positive`."""
    sides = predicted == positive, labels == positive
    found, wanted, both = (share(rows, data) for rows in (*sides, sides[0] & sides[1]))
    return 200 * both / np.maximum(found + wanted, 1e-9)


def _pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    x, y = x - x.mean(), y - y.mean()
    mean_x, mean_y, products = weights @ x, weights @ y, weights @ (x * y)
    spread = (weights @ x**2 - mean_x**2) * (weights @ y**2 - mean_y**2)
    return 100 * (products - mean_x * mean_y) / np.sqrt(np.maximum(spread, 1e-30))


@cache  # drawn once for all encoders and spaces that a process compares
def _weights(data: str, n: int) -> Floats:
    """How often each of n examples of a data set is drawn, as a share of n: [RESAMPLES, n]."""
    random = np.random.default_rng(list(data.encode()))
    return random.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n
