"""Local-linear regression of one variable on another (Fan & Gijbels 1992)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

_BLOCK = 512  # estimates made at once, each from all points
_BANDWIDTHS = 30  # tried when one is chosen
_FLAT = 1e-10  # below this share of S₀S₂ the points stand in one place: a line through them is any


@dataclass(frozen=True, eq=False)
class LocalLinear:
    """At x₀, the height a of the line a + b (x − x₀) that fits the points near x₀ best:

        min over a, b of  Σᵢ K((xᵢ − x₀) / h) (yᵢ − a − b (xᵢ − x₀))²

    with a Gaussian kernel K and the bandwidth h; their mean where they all have one x.

    >>> LocalLinear(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1.0)(np.array([1.5]))
    array([4.])
    """

    x: np.ndarray
    """float64 [n]"""
    y: np.ndarray
    """float64 [n]"""
    bandwidth: float

    @classmethod
    def fit(cls, x: np.ndarray, y: np.ndarray) -> Self:
        """Choose the bandwidth whose leave-one-out squared error is least.

        Raises:
            ValueError: fewer than three points.
        """
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if len(x) < 3:
            raise ValueError(f"{len(x)} points are too few to fit")
        span = max(float(np.ptp(x)), 1e-12)
        tried = [cls(x, y, float(h)) for h in np.geomspace(span / 500, span, _BANDWIDTHS)]
        return min(tried, key=lambda fitted: fitted.leave_one_out())

    def __call__(self, at: np.ndarray) -> np.ndarray:
        """The estimates at some places, float64 [m]."""
        return self._estimate(np.asarray(at, np.float64))[0]

    def leave_one_out(self) -> float:
        """Mean squared error of each point as estimated from all others.

        Of a linear smoother ŷ = L y that is the mean of ((yᵢ − ŷᵢ) / (1 − Lᵢᵢ))²; a bandwidth at
        which a point has no other to be estimated from is as bad as can be.
        """
        estimates, own = self._estimate(self.x)
        if (own > 1 - 1e-9).any():
            return float("inf")
        return float(np.mean(((self.y - estimates) / (1 - own)) ** 2))

    def _estimate(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The estimates, and the weight that a point at the place itself has in each."""
        blocks = [self._block(at[i : i + _BLOCK]) for i in range(0, len(at), _BLOCK)]
        if not blocks:
            return np.zeros(0), np.zeros(0)
        estimates, own = zip(*blocks, strict=True)
        return np.concatenate(estimates), np.concatenate(own)

    def _block(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        away = self.x - at[:, None]
        exponents = -0.5 * (away / self.bandwidth) ** 2
        largest = exponents.max(axis=1, keepdims=True)  # far from all points nothing underflows
        kernel = np.exp(exponents - largest)
        s0, s1, s2 = kernel.sum(1), (kernel * away).sum(1), (kernel * away**2).sum(1)
        t0, t1 = kernel @ self.y, (kernel * away) @ self.y
        determinant = s0 * s2 - s1**2
        flat = determinant <= _FLAT * s0 * s2
        safe = np.where(flat, 1.0, determinant)
        estimates = np.where(flat, t0 / s0, (s2 * t0 - s1 * t1) / safe)
        return estimates, np.where(flat, 1 / s0, s2 / safe)
