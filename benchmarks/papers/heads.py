"""Heads, which predict a label from the vectors of two sentences.

To add a head, write a class here and list it in `HEADS`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax, mse_loss

_BLOCK = 512  # number of estimates to compute at once
_BANDWIDTHS = 30  # number of bandwidths to try
_FLAT = 1e-10  # if determinant / (s0 s2) is less, all x count as equal

Floats = NDArray[np.float64]


class Head(nn.Module):
    """Base class of heads. Labels are between `lowest` and `highest`."""

    name: ClassVar[str]

    def __init__(self, *, lowest: float, highest: float) -> None:
        super().__init__()
        self.lowest, self.highest = lowest, highest

    def settings(self) -> dict[str, Any]:
        """Return the settings as a dict for JSON, which `open_head` accepts."""
        return {"name": self.name, "lowest": self.lowest, "highest": self.highest}

    def loss(self, first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
        """Return the training loss, a scalar, given vectors, [n, dim] each, and labels, [n]."""
        raise NotImplementedError

    @torch.no_grad()
    def predict(self, first: NDArray[np.floating], second: NDArray[np.floating]) -> Floats:
        """Return the predicted labels, [n], of two arrays of vectors, [n, dim] each."""
        weight = next(iter(self.state_dict().values()), torch.zeros(1))
        sides = (torch.from_numpy(np.asarray(side)).to(weight) for side in (first, second))
        return np.asarray(self(*sides).double().cpu().numpy())


class Distribution(Head):
    """Predicts a distribution over the whole numbers of the scale (Tai et al. 2015, 4.2).

    a and b are the vectors of both sentences, and r are the whole numbers. The label ŷ is the mean:

        h× = a ⊙ b,   h₋ = |a − b|
        hₛ = σ(W× h× + W₋ h₋ + b₁),   p̂ = softmax(W₂ hₛ + b₂),   ŷ = r · p̂          (Eq. 15)

    The loss is KL(p ‖ p̂), where p are the `target_distributions` (Eq. 16, 17).
    """

    name = "distribution"

    def __init__(self, *, dim: int, units: int, lowest: float, highest: float) -> None:
        super().__init__(lowest=lowest, highest=highest)
        self.dim, self.units = dim, units
        self.products = nn.Linear(dim, units)  # includes b₁
        self.distances = nn.Linear(dim, units, bias=False)
        self.classes = nn.Linear(units, int(highest - lowest) + 1)

    def settings(self) -> dict[str, Any]:
        """Return the settings, including the sizes."""
        return {**super().settings(), "dim": self.dim, "units": self.units}

    def log_probabilities(self, first: Tensor, second: Tensor) -> Tensor:
        """Return ln p̂, [n, whole numbers of the scale]."""
        hidden = self.products(first * second) + self.distances((first - second).abs())
        return log_softmax(self.classes(torch.sigmoid(hidden)), dim=1)

    def loss(self, first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
        """Return the mean of KL(p ‖ p̂)."""
        targets = target_distributions(labels, self.lowest, self.highest)
        return kl_div(self.log_probabilities(first, second), targets, reduction="batchmean")

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the predicted labels ŷ, [n]."""
        probabilities = self.log_probabilities(first, second).exp()
        steps = torch.arange(probabilities.shape[1]).to(probabilities)
        return self.lowest + probabilities @ steps


def target_distributions(labels: Tensor, lowest: float, highest: float) -> Tensor:
    """Distribute each label over the two nearest whole numbers: [n, whole numbers of the scale].

    >>> target_distributions(torch.tensor([3.25]), 1, 5)
    tensor([[0.0000, 0.0000, 0.7500, 0.2500, 0.0000]])
    """
    steps = torch.arange(int(highest - lowest) + 1).to(labels)
    return (1 - (labels.unsqueeze(1) - lowest - steps).abs()).clamp_min(0)


@dataclass(frozen=True, eq=False)
class LocalLinear:
    """Local-linear regression for n points, with a Gaussian kernel K and the bandwidth h.

    The estimate at x₀ is `a`, the height at x₀ of a line that is fitted to the points near x₀:

        min over a, b of  Σᵢ K((xᵢ − x₀) / h) (yᵢ − a − b (xᵢ − x₀))²

    If all points have the same x, the estimate is the mean of their y.

    >>> LocalLinear(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1.0)(np.array([1.5]))
    array([4.])
    """

    x: Floats  # float64 [n]
    y: Floats  # float64 [n]
    bandwidth: float

    @classmethod
    def fit(cls, x: Floats, y: Floats) -> Self:
        """Select the bandwidth with the lowest leave-one-out error."""
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if len(x) < 3:
            raise ValueError(f"{len(x)} points are too few to fit")
        span = max(float(np.ptp(x)), 1e-12)
        tried = [cls(x, y, float(h)) for h in np.geomspace(span / 500, span, _BANDWIDTHS)]
        return min(tried, key=lambda fitted: fitted.leave_one_out())

    def __call__(self, at: Floats) -> Floats:
        """Return the estimates at m points, [m]."""
        return self._estimate(np.asarray(at, np.float64))[0]

    def leave_one_out(self) -> float:
        """Return the mean of the squared errors ((yᵢ − ŷᵢ) / (1 − Lᵢᵢ))², where ŷ = L y."""
        estimates, own = self._estimate(self.x)
        if (own > 1 - 1e-9).any():
            return float("inf")
        return float(np.mean(((self.y - estimates) / (1 - own)) ** 2))

    def _estimate(self, at: Floats) -> tuple[Floats, Floats]:
        """Return the estimates ŷᵢ at x₀ᵢ = `at[i]`, and the weight Lᵢᵢ of a point with xᵢ = x₀ᵢ."""
        blocks = [self._block(at[i : i + _BLOCK]) for i in range(0, max(len(at), 1), _BLOCK)]
        estimates, own = map(np.concatenate, zip(*blocks, strict=True))
        return estimates, own

    def _block(self, at: Floats) -> tuple[Floats, Floats]:
        away = self.x - at[:, None]
        exponents = -0.5 * (away / self.bandwidth) ** 2
        largest = exponents.max(axis=1, keepdims=True)  # avoids underflow far from all points
        kernel = np.exp(exponents - largest)
        s0, s1, s2 = kernel.sum(1), (kernel * away).sum(1), (kernel * away**2).sum(1)
        t0, t1 = kernel @ self.y, (kernel * away) @ self.y
        determinant = s0 * s2 - s1**2
        flat = determinant <= _FLAT * s0 * s2
        safe = np.where(flat, 1.0, determinant)
        estimates = np.where(flat, t0 / s0, (s2 * t0 - s1 * t1) / safe)
        return estimates, np.where(flat, 1 / s0, s2 / safe)


class Manhattan(Head):
    """Predicts a label by the similarity exp(−‖a − b‖₁) (MaLSTM; Mueller & Thyagarajan 2016).

    The head has no trained weights. `calibrate` adds a regression of labels on similarities.
    """

    name = "manhattan"

    def __init__(self, *, lowest: float, highest: float, points: int = 0) -> None:
        super().__init__(lowest=lowest, highest=highest)
        # Points of the regression: similarities and labels, both in [0, 1].
        self.register_buffer("points", torch.zeros(2, points, dtype=torch.float64))
        self.register_buffer("bandwidth", torch.ones(1, dtype=torch.float64))

    points: Tensor
    bandwidth: Tensor

    def settings(self) -> dict[str, Any]:
        """Return the settings, including the number of points of the regression."""
        return {**super().settings(), "points": self.points.shape[1]}

    def similarity(self, first: Tensor, second: Tensor) -> Tensor:
        """Return exp(−‖a − b‖₁), [n], in (0, 1]."""
        return torch.exp(-(first - second).abs().sum(dim=1))

    def loss(self, first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
        """Return the mean squared error of the similarities."""
        return mse_loss(self.similarity(first, second), self.rescaled(labels))

    def rescaled(self, labels: Tensor) -> Tensor:
        """Return labels rescaled to [0, 1]."""
        return (labels - self.lowest) / (self.highest - self.lowest)

    def calibrate(
        self, first: NDArray[np.floating], second: NDArray[np.floating], labels: Floats
    ) -> float:
        """Fit the regression to vectors, [n, dim] each, and labels, [n]. Return the bandwidth."""
        sides = (torch.from_numpy(np.asarray(side)).double() for side in (first, second))
        similarities = self.similarity(*sides)
        targets = self.rescaled(torch.from_numpy(np.asarray(labels, np.float64)))
        fitted = LocalLinear.fit(similarities.numpy(), targets.numpy())
        self.points = torch.stack([similarities, targets])
        self.bandwidth = torch.tensor([fitted.bandwidth], dtype=torch.float64)
        return fitted.bandwidth

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the predicted labels, [n]."""
        similarities = self.similarity(first, second)
        if self.points.shape[1]:
            x, y = self.points.cpu().numpy()
            estimates = LocalLinear(x, y, float(self.bandwidth))(similarities.cpu().numpy())
            similarities = torch.from_numpy(np.clip(estimates, 0, 1)).to(similarities)
        return self.lowest + similarities * (self.highest - self.lowest)


HEADS: dict[str, type[Head]] = {head.name: head for head in (Distribution, Manhattan)}


def open_head(settings: dict[str, Any]) -> Head:
    """Return a new head with these settings."""
    values = dict(settings)
    return HEADS[values.pop("name")](**values)
