"""Encoders by the mean of word or trigram vectors."""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from paraloom.models.embeddings.encoders.base import TokenEncoder
from paraloom.models.embeddings.encoders.ragged_batches import RaggedBatch, means


class Average(TokenEncoder):
    """Encodes a sentence as the mean of its word or trigram vectors."""

    reads_order = False

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences, [n, dim].

        Without gradients, the results are bit-identical to sentence-transformers' StaticEmbedding.
        """
        if torch.is_grad_enabled():
            return means(batch)
        vectors, rows, offsets = batch
        flat, starts = (torch.from_numpy(array).to(vectors.device) for array in (rows, offsets))
        return embedding_bag(
            flat, vectors.float(), starts.int(), mode="mean", include_last_offset=True
        )
