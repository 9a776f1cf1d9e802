"""Figures × 100 on test examples, and on samples of the examples drawn with replacement.

A figure and its values on the samples form an array, [1 + RESAMPLES]. All encoders are measured on
the same samples of a data set, so that their differences are paired.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from paraloom.models.embeddings.applications.evaluation import correlation
from paraloom.models.embeddings.datasets.similarity import LabelledPairs

RESAMPLES = 200  # the standard deviation over samples then has an error of 5%

Floats = NDArray[np.float64]


class Resampled(NamedTuple):
    """Pearson's r and Spearman's ρ × 100. In a sample, ρ uses the ranks among all examples."""

    pearson: Floats
    spearman: Floats


def resampled(predicted: NDArray[np.floating], pairs: LabelledPairs) -> Resampled:
    """Return the correlations of pairs' predicted scores with the pairs' labels."""
    return correlations(predicted, pairs.scores, f"{pairs.group} {pairs.name}")


def correlations(
    predicted: NDArray[np.floating], labels: NDArray[np.floating], data: str
) -> Resampled:
    """Return the correlations of n predictions with n labels."""
    weights = _weights(data, len(labels))
    x, y = predicted.astype(float), labels.astype(float)
    r, rho = correlation(x, y)
    samples, of_ranks = _pearson(x, y, weights), _pearson(rankdata(x), rankdata(y), weights)
    return Resampled(np.append(r, samples).round(4), np.append(rho, of_ranks).round(4))


def share(right: NDArray[np.bool_], data: str) -> Floats:
    """Return the percentage of n examples that are right, [1 + RESAMPLES]."""
    return 100 * np.append(right.mean(), _weights(data, len(right)) @ right)


def f1(predicted: NDArray[Any], labels: NDArray[Any], positive: str, data: str) -> Floats:
    """Return the F1 × 100 of the class `positive`, [1 + RESAMPLES]."""
    sides = predicted == positive, labels == positive
    found, wanted, both = (share(rows, data) for rows in (*sides, sides[0] & sides[1]))
    return 200 * both / np.maximum(found + wanted, 1e-9)


def _pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    x, y = x - x.mean(), y - y.mean()
    mean_x, mean_y, products = weights @ x, weights @ y, weights @ (x * y)
    spread = (weights @ x**2 - mean_x**2) * (weights @ y**2 - mean_y**2)
    return 100 * (products - mean_x * mean_y) / np.sqrt(np.maximum(spread, 1e-30))


@cache  # drawn once per process
def _weights(data: str, n: int) -> Floats:
    """Return how often each of n examples is drawn, as a share of n: [RESAMPLES, n]."""
    random = np.random.default_rng(list(data.encode()))
    return random.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n
