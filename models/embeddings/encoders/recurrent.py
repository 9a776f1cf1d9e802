"""Encoders that pool the states of recurrent networks."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paraloom.models.embeddings.encoders.base import TokenEncoder
from paraloom.models.embeddings.encoders.lstm import LSTM
from paraloom.models.embeddings.encoders.ragged_batches import (
    Input,
    RaggedBatch,
    maxima,
    means,
    vectors_at,
)
from paraloom.models.embeddings.options import EmbeddingOptions

Pooling = Literal["last", "mean", "max"]
Combination = Literal["concat", "mean", "tanh"]
Build = Callable[[Input, EmbeddingOptions], TokenEncoder]


class Recurrent(TokenEncoder):
    """Encodes a sentence by pooling the outputs of recurrent networks.

    Args:
        directions: a forward network, or a forward and a backward network. A network returns its
            outputs at the nodes of a trie, [nodes, dim], and the trie (`PrefixTrie`).
        pooling: how the outputs of a sentence are reduced to one vector.
        combination: how the outputs of two directions are combined (Wieting & Gimpel 2017, 4.2).
            `tanh` is a layer tanh(W [forward; backward] + b), from two vectors of length h to one.
    """

    def __init__(
        self,
        input: Input,
        directions: Sequence[Any],
        pooling: Pooling,
        combination: Combination = "concat",
    ) -> None:
        size, both = directions[0].dim, len(directions) == 2
        super().__init__(input, 2 * size if both and combination == "concat" else size)
        self.pooling, self.combination = pooling, combination
        self.directions = nn.ModuleList(directions)
        self.layer = nn.Linear(2 * size, size) if both and combination == "tanh" else None

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences, [n, dim]."""
        outputs, tries = zip(*(network(batch) for network in self.directions), strict=True)
        # Nodes to pool: the nodes of all words, or the last node of every non-empty sentence.
        nodes, offsets = [trie.paths for trie in tries], batch.offsets
        if self.pooling == "last":
            nodes = [trie.ends[trie.ends >= 0] for trie in tries]
            offsets = np.concatenate([[0], np.cumsum(tries[0].ends >= 0)])
        if self.layer is not None or (self.combination == "mean" and self.pooling == "max"):
            combined = self._combine(outputs, nodes)
            rows = np.arange(len(combined), dtype=np.int32)
            return _pool(RaggedBatch(combined, rows, offsets), self.pooling)
        pooled = [
            _pool(RaggedBatch(output, of.astype(np.int32), offsets), self.pooling)
            for output, of in zip(outputs, nodes, strict=True)
        ]
        if self.combination == "mean":
            return torch.stack(pooled).mean(dim=0)
        return torch.cat(pooled, dim=1)

    def _combine(self, outputs: Sequence[Tensor], nodes: Sequence[NDArray[np.integer]]) -> Tensor:
        weights = [None, None] if self.layer is None else self.layer.weight.chunk(2, dim=1)
        forward, backward = (
            vectors_at(output if weight is None else output @ weight.T, of)
            for output, of, weight in zip(outputs, nodes, weights, strict=True)
        )
        total = forward + backward
        return total / 2 if self.layer is None else torch.tanh(total + self.layer.bias)


def _pool(batch: RaggedBatch, pooling: Pooling) -> Tensor:
    if pooling == "max":
        return maxima(batch)
    if torch.is_grad_enabled():
        return means(batch)
    # Double precision makes the result independent of the order of addition.
    return means(batch._replace(vectors=batch.vectors.double())).float()


def recurrent(pooling: Pooling, *, both: bool = False) -> Build:
    """Return a function that builds an LSTM encoder in one direction, or in both."""

    def build(input: Input, options: EmbeddingOptions) -> Recurrent:
        size, directions = options.hidden or input.dim, (False, True)[: 1 + both]
        networks = [LSTM(input.dim, size, backward=backward) for backward in directions]
        return Recurrent(input, networks, pooling, options.combine)

    return build
