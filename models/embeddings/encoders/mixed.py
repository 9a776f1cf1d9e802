"""Several encoders trained as one, by addition or concatenation (ParaNMT 6.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from models.embeddings.encoders.base import Encoder
from models.embeddings.ragged_columns import Sentences


class Mixed(Encoder):
    """Every encoder has its own word vectors; the sentence vectors are added or concatenated."""

    def __init__(self, encoders: Sequence[Encoder], mix: Literal["concat", "add"]) -> None:
        super().__init__()
        sizes = [encoder.dim for encoder in encoders]
        if mix == "add" and len(set(sizes)) > 1:
            raise ValueError(f"mix: vectors of lengths {sizes} cannot be added, only joined")
        self.parts, self.mix = nn.ModuleList(encoders), mix  # `parts` names the saved weights
        self.dim = sizes[0] if mix == "add" else sum(sizes)

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        vectors = [encoder(sentences) for encoder in self.parts]
        return torch.cat(vectors, dim=1) if self.mix == "concat" else sum(vectors[1:], vectors[0])
