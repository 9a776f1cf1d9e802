"""The interface of encoders, and the base class of those that read one vocabulary."""

from __future__ import annotations

from torch import Tensor, nn

from models.embeddings.encoders.ragged_batches import Input, RaggedBatch
from models.embeddings.ragged_columns import Sentences


class Encoder(nn.Module):
    """Turns sentences into vectors, [n, dim]; an empty sentence into zeros."""

    dim: int
    """Length of a sentence vector."""

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        raise NotImplementedError


class TokenEncoder(Encoder):
    """An encoder of words or trigrams, whose vectors an `Input` looks up; subclasses encode them.

    `dim` is the length of a sentence vector; None: that of a word vector.
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
