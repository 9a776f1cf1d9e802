"""Word Avg and Trigram Avg: the mean, or the sum, of a sentence's word or trigram vectors."""

import numpy as np
from torch import Tensor

from models.embeddings.encoders.base import TokenEncoder
from models.embeddings.encoders.ragged_batches import RaggedBatch, means, weighted_sums


class Average(TokenEncoder):
    """g(s) = the mean of the vectors of s's words or trigrams, [n, dim]; zeros if it has none."""

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences after the lookup."""
        return means(batch)


class Sum(TokenEncoder):
    """The sum of the word vectors, [n, dim] (BOW of Zhelezniak et al. 2018)."""

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences after the lookup."""
        return weighted_sums(batch, np.ones(len(batch.rows)))
