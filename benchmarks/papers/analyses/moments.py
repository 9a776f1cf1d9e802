"""Means and standard deviations that can be merged."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments of a set of values. The moments of two sets can be added (Chan et al. 1979)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared deviations from the mean

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Compute the moments of values, [n]. Integer `weights`, [n], repeat the values.

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
        """The population standard deviation, or 0 if there are no values."""
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    def __add__(self, other: "Moments") -> "Moments":
        if not other.count:
            return self
        count, difference = self.count + other.count, other.mean - self.mean
        mean = self.mean + difference * other.count / count
        squares = self.squares + other.squares + difference**2 * self.count * other.count / count
        return Moments(count, mean, squares)
