"""The sum of a sentence's word vectors (BOW of Zhelezniak et al. 2018)."""

import numpy as np
from torch import Tensor

from paraloom.models.embeddings.encoders.base import TokenEncoder
from paraloom.models.embeddings.encoders.ragged_batches import RaggedBatch, weighted_sums


class Sum(TokenEncoder):
    """The sum of the word vectors, [n, dim]."""

    reads_order = False

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences after the lookup."""
        return weighted_sums(batch, np.ones(len(batch.rows)))
