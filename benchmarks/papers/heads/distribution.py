"""A label as the mean of a predicted distribution over the scale (Tai, Socher & Manning 2015, 4.2).

With the vectors a and b of two sentences and the scale's whole numbers r:

    h× = a ⊙ b,   h₋ = |a − b|
    hₛ = σ(W× h× + W₋ h₋ + b₁),   p̂ = softmax(W₂ hₛ + b₂),   ŷ = r · p̂              (Eq. 15)

trained by KL(p ‖ p̂), where p is the distribution over the two whole numbers around the label y
with mean y                                                                          (Eq. 16, 17)
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax

from paraloom.papers.heads import Head


class Distribution(Head):
    """Two layers over the products and distances of two vectors; the hidden one has `units`."""

    name = "distribution"

    def __init__(self, *, dim: int, units: int, lowest: float, highest: float) -> None:
        super().__init__(lowest=lowest, highest=highest)
        self.dim, self.units = dim, units
        self.products = nn.Linear(dim, units)  # holds b₁
        self.distances = nn.Linear(dim, units, bias=False)
        self.classes = nn.Linear(units, int(highest - lowest) + 1)

    def settings(self) -> dict[str, Any]:
        """The scale and the sizes."""
        return {**super().settings(), "dim": self.dim, "units": self.units}

    def log_probabilities(self, first: Tensor, second: Tensor) -> Tensor:
        """ln p̂ of the scale's whole numbers, [n, classes]."""
        hidden = self.products(first * second) + self.distances((first - second).abs())
        return log_softmax(self.classes(torch.sigmoid(hidden)), dim=1)

    def loss(self, first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
        """Mean of KL(p ‖ p̂)."""
        targets = target_distributions(labels, self.lowest, self.highest)
        return kl_div(self.log_probabilities(first, second), targets, reduction="batchmean")

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """ŷ."""
        probabilities = self.log_probabilities(first, second).exp()
        steps = torch.arange(probabilities.shape[1], device=probabilities.device)
        return self.lowest + probabilities @ steps.to(probabilities)


def target_distributions(labels: Tensor, lowest: float, highest: float) -> Tensor:
    """Distributions over the whole numbers of a scale with the labels as means, [n, classes].

    >>> target_distributions(torch.tensor([3.25]), 1, 5)
    tensor([[0.0000, 0.0000, 0.7500, 0.2500, 0.0000]])
    """
    steps = torch.arange(int(highest - lowest) + 1, device=labels.device)
    distances = (labels.unsqueeze(1) - lowest - steps.to(labels)).abs()
    return (1 - distances).clamp_min(0)
