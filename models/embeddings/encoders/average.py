"""Word Avg and Trigram Avg: the mean of the vectors of what a sentence is made of."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.embeddings.encoders.bags import distinct_words, mean_weights, weighted_sums
from models.embeddings.flat import Sentences
from models.embeddings.table import Table
from models.embeddings.vocabulary import Kind


class Average(nn.Module):
    """g(s) = the mean of the vectors of s's words or trigrams, [n, dim]; zeros if it has none."""

    def __init__(self, table: Table, kind: Kind) -> None:
        super().__init__()
        self.table = table
        self.kind: Kind = kind
        self.dim = table.weight.shape[1]

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        words = distinct_words(sentences[self.kind])
        rows = torch.from_numpy(words.distinct).to(self.table.weight.device)
        weights = mean_weights(words.offsets)
        return weighted_sums(self.table(rows), words.places, words.offsets, weights)
