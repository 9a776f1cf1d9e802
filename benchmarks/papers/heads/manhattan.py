"""A label as a distance: exp(−‖a − b‖₁) of two vectors (MaLSTM; Mueller & Thyagarajan 2016).

Trained by the squared error of labels rescaled to [0, 1]. The similarities can be calibrated
afterwards by a local-linear regression of the labels on them.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import mse_loss

from paraloom.papers.heads import Head

_BLOCK = 512  # estimates computed at once, each from all points
_BANDWIDTHS = 30  # tried when one is chosen
_FLAT = 1e-10  # of S₀S₂: below, all points have the same x, and the slope is undefined

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LocalLinear:
    """The estimate at x₀ is the value a of the line a + b (x − x₀) with the best fit near x₀:

        min over a, b of  Σᵢ K((xᵢ − x₀) / h) (yᵢ − a − b (xᵢ − x₀))²

    with a Gaussian kernel K and the bandwidth h; the mean of the points if all have the same x.

    >>> LocalLinear(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1.0)(np.array([1.5]))
    array([4.])
    """

    x: Floats  # float64 [n]
    y: Floats  # float64 [n]
    bandwidth: float

    @classmethod
    def fit(cls, x: Floats, y: Floats) -> Self:
        """Select the bandwidth with the least leave-one-out squared error."""
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if len(x) < 3:
            raise ValueError(f"{len(x)} points are too few to fit")
        span = max(float(np.ptp(x)), 1e-12)
        tried = [cls(x, y, float(h)) for h in np.geomspace(span / 500, span, _BANDWIDTHS)]
        return min(tried, key=lambda fitted: fitted.leave_one_out())

    def __call__(self, at: Floats) -> Floats:
        """The estimates at m points, [m]."""
        return self._estimate(np.asarray(at, np.float64))[0]

    def leave_one_out(self) -> float:
        """Mean squared error of the estimates of each point from all others.

        For a linear smoother ŷ = L y this is the mean of ((yᵢ − ŷᵢ) / (1 − Lᵢᵢ))²; infinite for a
        bandwidth at which a point has no neighbour.
        """
        estimates, own = self._estimate(self.x)
        if (own > 1 - 1e-9).any():
            return float("inf")
        return float(np.mean(((self.y - estimates) / (1 - own)) ** 2))

    def _estimate(self, at: Floats) -> tuple[Floats, Floats]:
        """The estimates, and the weight in each of a point at the same x."""
        blocks = [self._block(at[i : i + _BLOCK]) for i in range(0, len(at), _BLOCK)]
        if not blocks:
            return np.zeros(0), np.zeros(0)
        estimates, own = zip(*blocks, strict=True)
        return np.concatenate(estimates), np.concatenate(own)

    def _block(self, at: Floats) -> tuple[Floats, Floats]:
        away = self.x - at[:, None]
        exponents = -0.5 * (away / self.bandwidth) ** 2
        largest = exponents.max(axis=1, keepdims=True)  # against underflow far from all points
        kernel = np.exp(exponents - largest)
        s0, s1, s2 = kernel.sum(1), (kernel * away).sum(1), (kernel * away**2).sum(1)
        t0, t1 = kernel @ self.y, (kernel * away) @ self.y
        determinant = s0 * s2 - s1**2
        flat = determinant <= _FLAT * s0 * s2
        safe = np.where(flat, 1.0, determinant)
        estimates = np.where(flat, t0 / s0, (s2 * t0 - s1 * t1) / safe)
        return estimates, np.where(flat, 1 / s0, s2 / safe)


class Manhattan(Head):
    """Has no trained weights; after `calibrate` it stores the `points` of the regression."""

    name = "manhattan"

    def __init__(self, *, lowest: float, highest: float, points: int = 0) -> None:
        super().__init__(lowest=lowest, highest=highest)
        # Similarities and labels in [0, 1].
        self.register_buffer("points", torch.zeros(2, points, dtype=torch.float64))
        self.register_buffer("bandwidth", torch.ones(1, dtype=torch.float64))

    points: Tensor
    bandwidth: Tensor

    def settings(self) -> dict[str, Any]:
        """The scale and the number of points."""
        return {**super().settings(), "points": self.points.shape[1]}

    def similarity(self, first: Tensor, second: Tensor) -> Tensor:
        """g = exp(−‖a − b‖₁), [n], in (0, 1]."""
        return torch.exp(-(first - second).abs().sum(dim=1))

    def loss(self, first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
        """Mean squared error of g."""
        return mse_loss(self.similarity(first, second), self.rescaled(labels))

    def rescaled(self, labels: Tensor) -> Tensor:
        """Labels rescaled to [0, 1]."""
        return (labels - self.lowest) / (self.highest - self.lowest)

    def calibrate(
        self,
        first: NDArray[np.floating],
        second: NDArray[np.floating],
        labels: NDArray[np.float64],
    ) -> float:
        """Regress labels [n] on the similarities of vectors [n, dim]; return the bandwidth."""
        sides = (torch.from_numpy(np.asarray(side)).double() for side in (first, second))
        similarities = self.similarity(*sides)
        targets = self.rescaled(torch.from_numpy(np.asarray(labels, np.float64)))
        fitted = LocalLinear.fit(similarities.numpy(), targets.numpy())
        self.points = torch.stack([similarities, targets])
        self.bandwidth = torch.tensor([fitted.bandwidth], dtype=torch.float64)
        return fitted.bandwidth

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """The similarity, calibrated after `calibrate`, on the scale of the labels."""
        similarities = self.similarity(first, second)
        if self.points.shape[1]:
            x, y = self.points.cpu().numpy()
            estimates = LocalLinear(x, y, float(self.bandwidth))(similarities.cpu().numpy())
            similarities = torch.from_numpy(np.clip(estimates, 0, 1)).to(similarities)
        return self.lowest + similarities * (self.highest - self.lowest)
