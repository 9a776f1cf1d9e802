"""The check of a network's weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from paraloom.models.errors import UserError

if TYPE_CHECKING:
    import torch


def check_finite(network: torch.nn.Module, path: Path) -> None:
    """Check that all weights are numbers.

    Args:
        path: of the file or folder that they were read from, for the error.
    """
    buffers = {name for name, _ in network.named_buffers()}
    for name, weights in network.state_dict().items():
        if weights.isnan().any():
            raise UserError(f"{path}: the weights hold NaN ({name}); get the model again")
        if name not in buffers and weights.isinf().any():
            raise UserError(f"{path}: the weights hold infinity ({name}); get the model again")
