"""Base classes: encoders, encoders with one vocabulary, and mixtures."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from paraloom.models.embeddings.encoders.ragged_batches import Input, RaggedBatch
from paraloom.models.embeddings.ragged_columns import Sentences


class Encoder(nn.Module):
    """Maps sentences to vectors, [n, dim]; an empty sentence to zeros. Subclass it to add an
    encoder."""

    dim: int  # length of a sentence vector
    outputs: int | None = None  # number of words that decoders, if any, predict
    reads_order: bool = True  # whether word order matters

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        raise NotImplementedError


class TokenEncoder(Encoder):
    """An encoder of words or trigrams, whose vectors an `Input` looks up; subclasses define
    `encode`.

    `dim` is the length of a sentence vector; None: the length of a word vector.
    """

    def __init__(self, input: Input, dim: int | None = None) -> None:
        super().__init__()
        self.input, self.dim = input, input.dim if dim is None else dim

    def forward(self, sentences: Sentences) -> Tensor:
        """Look up and encode n sentences, [n, dim]."""
        return self.encode(self.input(sentences[self.input.kind]))

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences after the lookup, [n, dim]."""
        raise NotImplementedError


class Mixed(Encoder):
    """A mixture of encoders, each with its own word vectors; sentence vectors are added or
    concatenated (ParaNMT 6.6)."""

    def __init__(self, encoders: Sequence[Encoder], mix: Literal["concat", "add"]) -> None:
        super().__init__()
        sizes = [encoder.dim for encoder in encoders]
        if mix == "add" and len(set(sizes)) > 1:
            raise ValueError(f"mix: vectors of lengths {sizes} cannot be added, only joined")
        self.parts, self.mix = nn.ModuleList(encoders), mix  # `parts` is in saved weights' names
        self.dim = sizes[0] if mix == "add" else sum(sizes)
        self.reads_order = any(encoder.reads_order for encoder in encoders)

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        vectors = [encoder(sentences) for encoder in self.parts]
        return torch.cat(vectors, dim=1) if self.mix == "concat" else sum(vectors[1:], vectors[0])
