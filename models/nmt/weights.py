"""Weights of models from elsewhere: what loading them may raise, and what they must be."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paraloom.models.errors import UserError, in_one_line

if TYPE_CHECKING:
    import torch


@contextmanager
def loading(path: Path, pickled: Path) -> Iterator[None]:
    """Turn what torch's safe loading raises, and the libraries around it, into one line.

    Args:
        path: the file or folder that is loaded.
        pickled: the file in it that may hold code.
    """
    try:
        with in_one_line(f"{path}: the weights cannot be read"):
            yield
    except UserError as error:
        cause = error.__cause__
        causes = (cause, getattr(cause, "__cause__", None), getattr(cause, "__context__", None))
        refused = any(isinstance(each, pickle.UnpicklingError) for each in causes)
        if refused or "weights_only" in str(cause):  # the format of torch before 0.1.10
            raise UserError(
                f"{pickled}: refused, it holds code or objects, or is damaged; get the model as "
                "safetensors, or get it again"
            ) from error
        raise


def check_finite(network: torch.nn.Module, path: Path) -> None:
    """Check that all weights, which were read from `path`, are numbers."""
    buffers = {name for name, _ in network.named_buffers()}
    for name, weights in network.state_dict().items():
        if weights.isnan().any():
            raise UserError(f"{path}: the weights hold NaN ({name}); get the model again")
        if name not in buffers and weights.isinf().any():
            raise UserError(f"{path}: the weights hold infinity ({name}); get the model again")
