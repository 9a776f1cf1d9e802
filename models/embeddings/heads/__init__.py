"""Heads: what makes a predicted label of two sentences' vectors. A model without one has cosines.

A head is a module of this folder and a line in `HEADS`. It is trained with its encoder, and lies
in the model's folder beside it: settings in config.json, weights in head.safetensors.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

HEADS = {
    "distribution": "models.embeddings.heads.distribution.Distribution",
    "manhattan": "models.embeddings.heads.manhattan.Manhattan",
}


class Head(nn.Module):
    """Predicts labels on a scale.

    Args:
        lowest, highest: the ends of the scale.
    """

    name: ClassVar[str]

    def __init__(self, *, lowest: float, highest: float) -> None:
        super().__init__()
        self.lowest, self.highest = lowest, highest

    def settings(self) -> dict[str, Any]:
        """What `open_head` needs beside the weights, for JSON."""
        return {"name": self.name, "lowest": self.lowest, "highest": self.highest}

    def loss(self, first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
        """What training makes small, a scalar: vectors [n, dim] twice, labels [n] on the scale."""
        raise NotImplementedError

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Predicted labels, [n], of vectors [n, dim] twice."""
        raise NotImplementedError

    @torch.no_grad()
    def predict(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Predicted labels, float64 [n], of vectors [n, dim] twice."""
        weight = next(iter(self.state_dict().values()), torch.zeros(1))
        sides = (torch.from_numpy(np.asarray(side)).to(weight) for side in (first, second))
        return self(*sides).double().cpu().numpy()


def open_head(settings: dict[str, Any]) -> Head:
    """The head that gave these settings, without its weights.

    Raises:
        KeyError, TypeError, ValueError: they are not those of a head.
    """
    values = dict(settings)
    module, _, name = HEADS[values.pop("name")].rpartition(".")
    return getattr(import_module(module), name)(**values)
