"""Word Avg and Trigram Avg: the mean of the vectors of what a sentence is made of."""

from __future__ import annotations

from torch import Tensor, nn

from models.embeddings.encoders.bags import Input, means
from models.embeddings.flat import Sentences
from models.embeddings.vocabulary import Kind


class Average(nn.Module):
    """g(s) = the mean of the vectors of s's words or trigrams, [n, dim]; zeros if it has none."""

    def __init__(self, input: Input, kind: Kind) -> None:
        super().__init__()
        self.input, self.dim = input, input.dim
        self.kind: Kind = kind

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        tokens = self.input(sentences[self.kind])
        return means(tokens.vectors, tokens.places, tokens.offsets)
