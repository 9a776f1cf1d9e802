"""The margin loss over cosines (W&G 2017, Eq. 2)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

EPSILON = 1e-8  # a vector shorter than this has no direction: its cosine is 0


def unit(vectors: Tensor) -> Tensor:
    """Rows at length 1; a zero row stays zero (so that its cosine with anything is 0)."""
    return normalize(vectors, dim=1, eps=EPSILON)


def margin_loss(
    left: Tensor, right: Tensor, left_negative: Tensor, right_negative: Tensor, margin: float
) -> Tensor:
    """Mean over pairs of both sides' hinges; all arguments [pairs, dim], the result a scalar.

    max(0, δ - cos(l, r) + cos(l, l⁻)) + max(0, δ - cos(l, r) + cos(r, r⁻))
    """
    left, right = unit(left), unit(right)
    positive = (left * right).sum(1)
    against_left = (left * unit(left_negative)).sum(1)
    against_right = (right * unit(right_negative)).sum(1)
    hinges = torch.relu(margin - positive + against_left)
    hinges = hinges + torch.relu(margin - positive + against_right)
    return hinges.mean()
