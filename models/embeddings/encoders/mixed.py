"""Several encoders trained as one, by addition or concatenation (ParaNMT 6.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from models.embeddings.ragged_columns import Sentences


class Mixed(nn.Module):
    """Every part has word vectors of its own; their sentence vectors are added or joined."""

    def __init__(self, parts: Sequence[nn.Module], mix: Literal["concat", "add"]) -> None:
        super().__init__()
        sizes = [int(part.dim) for part in parts]  # type: ignore[arg-type]
        if mix == "add" and len(set(sizes)) > 1:
            raise ValueError(f"mix: vectors of lengths {sizes} cannot be added, only joined")
        self.parts, self.mix = nn.ModuleList(parts), mix
        self.dim = sizes[0] if mix == "add" else sum(sizes)

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        vectors = [part(sentences) for part in self.parts]
        return torch.cat(vectors, dim=1) if self.mix == "concat" else sum(vectors[1:], vectors[0])
