"""Means and deviations that can be merged, and entropies of counts.

ParaNMT's Table 2 describes a corpus by them: sentence length, IDF and similarity; the entropy of
the vocabulary and of the parses.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from paraloom.models.text.tokens import PairText
from paraloom.models.text.vectors import WordVectors


@dataclass(frozen=True, slots=True)
class Moments:
    """The mean of `count` values, and the sum of the squared deviations from it.

    A sum of moments is that of all values together (Chan, Golub & LeVeque 1979): unlike sums of
    squares it avoids cancellation, and the same parts in the same order give the same bits.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """The moments of values, repeated `weights` (integers) times; computed in float64.

        >>> Moments.of(np.array([1.0, 3.0])).deviation
        1.0
        """
        values = values.astype(np.float64)
        often = np.ones(len(values)) if weights is None else weights.astype(np.float64)
        count = often.sum()
        if not count:
            return cls()
        mean = float((values * often).sum() / count)
        return cls(int(count), mean, float(((values - mean) ** 2 * often).sum()))

    @property
    def deviation(self) -> float:
        """Population standard deviation; 0 if there are no values."""
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    def __add__(self, other: "Moments") -> "Moments":
        if not other.count:
            return self
        count, difference = self.count + other.count, other.mean - self.mean
        mean = self.mean + difference * other.count / count
        squares = self.squares + other.squares + difference**2 * self.count * other.count / count
        return Moments(count, mean, squares)


def entropy(occurrences: np.ndarray) -> Moments:
    """Moments of −ln p over all occurrences: the mean is the entropy of the counts, in nats.

    p is the share of a kind's count of all occurrences.

    >>> round(entropy(np.array([1, 1, 2])).mean / math.log(2), 6)
    1.5
    """
    kinds = occurrences[occurrences > 0]
    return Moments.of(np.log(kinds.sum() / kinds), kinds)


def sentence_moments(pairs: PairText, idf: WordVectors) -> dict[str, Moments]:
    """Moments of each side's number of tokens and mean IDF; empty sentences have no IDF.

    An unknown word has the value of the row for unknown words, or 0 if there is no such row.
    """
    of_word = idf.at(idf.rows(pairs.vocabulary))[:, 0]
    found = {}
    for name, side in (("reference", pairs.reference), ("translation", pairs.translation)):
        sums = np.bincount(side.rows, of_word[side.ids], minlength=len(side.lengths))
        some = side.lengths > 0
        found[f"{name}_tokens"] = Moments.of(side.lengths)
        found[f"{name}_idf"] = Moments.of(sums[some] / side.lengths[some])
    return found
