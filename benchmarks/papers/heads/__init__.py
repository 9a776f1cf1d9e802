"""Heads: they predict a label from the vectors of two sentences.

A head is a module in this folder and a line in `HEADS`. It is trained with its encoder and saved in
the same folder: its settings in config.json, its weights in head.safetensors.
"""

from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

HEADS = {
    "distribution": "paraloom.papers.heads.distribution.Distribution",
    "manhattan": "paraloom.papers.heads.manhattan.Manhattan",
}


class Head(nn.Module):
    """Predicts labels on the scale from `lowest` to `highest`."""

    name: ClassVar[str]

    def __init__(self, *, lowest: float, highest: float) -> None:
        super().__init__()
        self.lowest, self.highest = lowest, highest

    def settings(self) -> dict[str, Any]:
        """The arguments of `open_head`, for JSON."""
        return {"name": self.name, "lowest": self.lowest, "highest": self.highest}

    def loss(self, first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
        """The training loss, a scalar, of vectors [n, dim] twice and labels [n] on the scale."""
        raise NotImplementedError

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Predicted labels, [n], of vectors [n, dim] twice."""
        raise NotImplementedError

    @torch.no_grad()
    def predict(
        self, first: NDArray[np.floating], second: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Predicted labels, [n], of vectors [n, dim] twice."""
        weight = next(iter(self.state_dict().values()), torch.zeros(1))
        sides = (torch.from_numpy(np.asarray(side)).to(weight) for side in (first, second))
        return np.asarray(self(*sides).double().cpu().numpy())


def open_head(settings: dict[str, Any]) -> Head:
    """The head with these settings; its weights are not loaded."""
    values = dict(settings)
    module, _, name = HEADS[values.pop("name")].rpartition(".")
    head: Head = getattr(import_module(module), name)(**values)
    return head
