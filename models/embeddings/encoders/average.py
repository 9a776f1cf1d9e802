"""Word Avg and Trigram Avg: the mean of a sentence's word or trigram vectors."""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from paraloom.models.embeddings.encoders.base import TokenEncoder
from paraloom.models.embeddings.encoders.ragged_batches import RaggedBatch, means


class Average(TokenEncoder):
    """g(s) = mean of the vectors of s's words or trigrams, [n, dim]; zeros if it has none."""

    reads_order = False

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences after the lookup.

        Without gradients, results equal sentence-transformers' StaticEmbedding to the bit.
        """
        if torch.is_grad_enabled():
            return means(batch)
        vectors, rows, offsets = batch
        flat, starts = (torch.from_numpy(array).to(vectors.device) for array in (rows, offsets))
        return embedding_bag(
            flat, vectors.float(), starts.int(), mode="mean", include_last_offset=True
        )
