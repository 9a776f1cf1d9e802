"""The margin loss over cosines (W&G 2017, Eq. 2), with an explicit gradient."""

from typing import Any

import torch
from torch import Tensor

EPSILON = 1e-8  # a vector of at most this length has the cosine 0 with all vectors


def unit(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows scaled to length 1, [n, dim], and the divisors, [n, 1]. If a row's length is at
    most EPSILON, its divisor is ∞."""
    lengths = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    lengths = torch.where(lengths > EPSILON, lengths, torch.inf)
    return vectors / lengths, lengths


def margin_loss(quadruplets: Tensor, margin: float) -> Tensor:
    """Return the mean loss of n pairs, a scalar.

    A pair (l, r) with the negatives l⁻ and r⁻ has the loss

        max(0, δ - cos(l, r) + cos(l, l⁻)) + max(0, δ - cos(l, r) + cos(r, r⁻))

    `quadruplets`, [4n, dim], has the vectors of all l, then of all r, all l⁻ and all r⁻.
    """
    loss: Tensor = _MarginLoss.apply(quadruplets, margin)
    return loss


class _MarginLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, quadruplets: Tensor, margin: float) -> Tensor:
        directions, lengths = unit(quadruplets)
        left, right, left_negative, right_negative = directions.chunk(4)
        positive = torch.linalg.vecdot(left, right)
        left_hinge = margin - positive + torch.linalg.vecdot(left, left_negative)
        right_hinge = margin - positive + torch.linalg.vecdot(right, right_negative)
        hinges = torch.stack([left_hinge, right_hinge]).clamp_min_(0)
        ctx.save_for_backward(directions, lengths, hinges)
        return hinges.sum() / hinges.shape[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        directions, lengths, hinges = ctx.saved_tensors
        left, right, left_negative, right_negative = directions.chunk(4)
        scale = gradient / hinges.shape[1]
        to_left, to_right = ((hinges > 0) * scale).unsqueeze(2)
        to_positive = to_left + to_right
        along = torch.cat(  # gradient with respect to the directions
            [
                (left_negative * to_left).addcmul_(right, to_positive, value=-1),
                (right_negative * to_right).addcmul_(left, to_positive, value=-1),
                left * to_left,
                right * to_right,
            ]
        )
        # A gradient changes a vector's direction only by its component orthogonal to the vector.
        own = torch.linalg.vecdot(along, directions).unsqueeze(1)
        return along.addcmul_(directions, own, value=-1).div_(lengths), None
