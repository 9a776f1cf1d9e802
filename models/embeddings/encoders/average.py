"""Word Avg and Trigram Avg: the mean of the vectors of what a sentence is made of; their sum."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from models.embeddings.encoders.ragged_batches import Input, Tokens, means, weighted_sums
from models.embeddings.ragged_columns import Sentences
from models.embeddings.vocabulary import Kind


class Average(nn.Module):
    """g(s) = the mean of the vectors of s's words or trigrams, [n, dim]; zeros if it has none."""

    def __init__(self, input: Input, kind: Kind) -> None:
        super().__init__()
        self.input, self.dim = input, input.dim
        self.kind: Kind = kind

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        return self.encode(self.input(sentences[self.kind]))

    def encode(self, tokens: Tokens) -> Tensor:
        """Encode n sentences that were looked up."""
        return means(tokens.vectors, tokens.places, tokens.offsets)


class Total(Average):
    """The sum in place of the mean, [n, dim] (BOW of Zhelezniak et al. 2018)."""

    def encode(self, tokens: Tokens) -> Tensor:
        """Encode n sentences that were looked up."""
        ones = np.ones(len(tokens.places))
        return weighted_sums(tokens.vectors, tokens.places, tokens.offsets, ones)
