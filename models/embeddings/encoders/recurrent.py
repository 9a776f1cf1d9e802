"""Sentences from the outputs of recurrent networks: which outputs, and how directions meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from models.embeddings.encoders.gran import GRAN
from models.embeddings.encoders.gru import GRU, NormalisedGRU
from models.embeddings.encoders.lstm import LSTM
from models.embeddings.encoders.ragged_batches import Input, Tokens, means
from models.embeddings.ragged_columns import Sentences
from models.embeddings.vocabulary import Kind

Pooling = Literal["last", "mean", "max"]
Combination = Literal["concat", "mean", "tanh"]


class Recurrent(nn.Module):
    """Pools the outputs of one or two directions to one vector per sentence.

    Args:
        input: the word vectors.
        directions: one network, or one that reads forward and one that reads backward.
        pooling: take the output at the last word, or the mean or maximum over all words.
        combination: how the outputs of two directions become one (W&G 4.2): side by side, their
            mean, or a layer tanh(W [forward; backward] + b) of one direction's length.
    """

    kind: Kind = "words"

    def __init__(
        self,
        input: Input,
        directions: Sequence[LSTM | GRU | NormalisedGRU | GRAN],
        pooling: Pooling,
        combination: Combination = "concat",
    ) -> None:
        super().__init__()
        self.input, self.pooling, self.combination = input, pooling, combination
        self.directions = nn.ModuleList(directions)
        size = directions[0].dim
        both = len(directions) == 2
        self.dim = 2 * size if both and combination == "concat" else size
        self.layer = nn.Linear(2 * size, size) if both and combination == "tanh" else None

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]; zeros for an empty one."""
        return self.encode(self.input(sentences[self.kind]))

    def encode(self, tokens: Tokens) -> Tensor:
        """Encode n sentences that were looked up."""
        outputs, trees = zip(*(network(tokens) for network in self.directions), strict=True)
        # The nodes that count: one per word, or the last of every sentence that has one.
        places, offsets = [tree.paths for tree in trees], tokens.offsets
        if self.pooling == "last":
            places = [tree.lasts[tree.lasts >= 0] for tree in trees]
            offsets = np.concatenate([[0], np.cumsum(trees[0].lasts >= 0)])
        if self.layer is not None or (self.combination == "mean" and self.pooling == "max"):
            met = self._meet(outputs, places)
            return _pool(met, np.arange(len(met), dtype=np.int32), offsets, self.pooling)
        pooled = [
            _pool(output, place.astype(np.int32), offsets, self.pooling)
            for output, place in zip(outputs, places, strict=True)
        ]
        if self.combination == "mean":
            return torch.stack(pooled).mean(dim=0)
        return torch.cat(pooled, dim=1)

    def _meet(self, outputs: Sequence[Tensor], places: Sequence[np.ndarray]) -> Tensor:
        """Combine both directions word by word, [words, size]."""
        weights = [None, None] if self.layer is None else self.layer.weight.chunk(2, dim=1)
        parts = [
            (output if weight is None else output @ weight.T)[
                torch.from_numpy(place).to(output.device)
            ]
            for output, place, weight in zip(outputs, places, weights, strict=True)
        ]
        total = parts[0] + parts[1]
        return total / 2 if self.layer is None else torch.tanh(total + self.layer.bias)


def _pool(vectors: Tensor, places: np.ndarray, offsets: np.ndarray, how: Pooling) -> Tensor:
    """One vector per sentence, [n, size], from those at `places`; zeros for an empty one."""
    if how != "max":
        return means(vectors, places, offsets)
    lengths = torch.from_numpy(np.diff(offsets)).to(vectors.device)
    words = vectors[torch.from_numpy(places).to(vectors.device)]
    pooled = torch.segment_reduce(words, "max", lengths=lengths, axis=0, unsafe=True)
    return torch.where((lengths > 0).unsqueeze(1), pooled, 0.0)
