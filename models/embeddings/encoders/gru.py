"""torch's gated recurrent unit."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paraloom.models.embeddings.encoders.prefix_trie import PrefixTrie, build_trie
from paraloom.models.embeddings.encoders.ragged_batches import RaggedBatch


class GRU(nn.Module):
    """A GRU over sentences in one direction, as torch computes it:

    r = σ(Wᵣ x + Uᵣ h + bᵣ),  z = σ(W_z x + U_z h + b_z),  g = tanh(W x + b + r ⊙ (U h + c))
    and the next state is z ⊙ h + (1 - z) ⊙ g.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.weights = nn.GRU(dim, hidden)
        self.dim = hidden

    def forward(self, batch: RaggedBatch) -> tuple[Tensor, PrefixTrie]:
        """The states at the nodes of the batch's trie, [nodes, hidden], and the trie."""
        vectors, rows, offsets = batch
        trie = build_trie(rows, offsets, share=False)
        if not len(trie.rows):
            return vectors.new_zeros(0, self.dim), trie
        # Not `vectors[rows]`, whose gradient is summed in no fixed order.
        inputs = vectors.index_select(0, torch.from_numpy(trie.rows).to(vectors.device))
        packed = PackedSequence(inputs, torch.from_numpy(np.diff(trie.starts)))
        return self.weights(packed)[0].data, trie
