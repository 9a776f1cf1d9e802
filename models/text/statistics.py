"""Means with their deviations, in parts that can be merged, and entropies of counts.

ParaNMT's Table 2 describes a corpus by them: sentence length, IDF, similarity; the entropy of its
vocabulary and of its parses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from models.text.tokens import PairText, TokenIds
from models.text.vectors import WordVectors


@dataclass(frozen=True, slots=True)
class Moments:
    """The mean of `count` values, and the sum of their squared differences from it."""

    count: int
    mean: float
    squares: float

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray | None = None) -> Moments:
        """Of the values, each as often as `weights` (whole numbers) says; in float64.

        >>> Moments.of(np.array([1.0, 3.0])).deviation
        1.0
        """
        values = values.astype(np.float64)
        often = np.ones(len(values)) if weights is None else weights.astype(np.float64)
        count = often.sum()
        if not count:
            return cls(0, 0.0, 0.0)
        mean = float((values * often).sum() / count)
        return cls(int(count), mean, float(((values - mean) ** 2 * often).sum()))

    @property
    def deviation(self) -> float:
        """Standard deviation: the root of the mean squared difference; 0 of no values."""
        return math.sqrt(self.squares / self.count) if self.count else 0.0


def merge_moments(parts: Iterable[Moments]) -> Moments:
    """The moments of all values together (Chan, Golub & LeVeque 1979), part by part in order.

    Nothing cancels, as it would with sums of squares; the same parts give the same bits.
    """
    total = Moments(0, 0.0, 0.0)
    for part in parts:
        if part.count:
            count = total.count + part.count
            away = part.mean - total.mean
            total = Moments(
                count,
                total.mean + away * part.count / count,
                total.squares + part.squares + away**2 * total.count * part.count / count,
            )
    return total


def entropy(occurrences: np.ndarray) -> Moments:
    """Moments of −ln p over all occurrences: the mean is the entropy of the counts, in nats.

    Args:
        occurrences: how often each kind occurs; p is its share.

    >>> round(entropy(np.array([1, 1, 2])).mean / math.log(2), 6)
    1.5
    """
    kinds = occurrences[occurrences > 0]
    return Moments.of(np.log(kinds.sum() / kinds), kinds)


def sentence_moments(pairs: PairText, idf: WordVectors) -> dict[str, Moments]:
    """Tokens of each side, and the mean IDF of each sentence's tokens; empty ones have no IDF.

    A word that the table does not have counts as its row for unknown words, else as 0.
    """
    of_word = idf.at(idf.rows(pairs.vocabulary))[:, 0]
    found = {}
    for name, side in (("reference", pairs.reference), ("translation", pairs.translation)):
        found[f"{name}_tokens"] = Moments.of(side.lengths)
        found[f"{name}_idf"] = Moments.of(_means(of_word, side))
    return found


def _means(of_word: np.ndarray, side: TokenIds) -> np.ndarray:
    sums = np.bincount(side.rows, of_word[side.ids], minlength=len(side.lengths))
    some = side.lengths > 0
    return np.asarray(sums[some] / side.lengths[some])
