"""A label as a distance: exp(−‖a − b‖₁) of two vectors (MaLSTM; Mueller & Thyagarajan 2016).

Trained by the squared error of labels rescaled to [0, 1]. The similarities can be calibrated
afterwards by a local-linear regression of the labels on them (4.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import mse_loss

from models.embeddings.heads import Head
from models.embeddings.heads.local_linear import LocalLinear


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
