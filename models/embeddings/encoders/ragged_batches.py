"""Batches without padding: sentences as rows of vectors, and weighted sums over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn.functional import embedding_bag

from models.embeddings.training.table import Table
from models.embeddings.vocabulary import FlatIds


class Tokens(NamedTuple):
    """The tokens of n sentences and their vectors."""

    vectors: Tensor
    """[v, dim]"""
    places: np.ndarray
    """int32 [tokens]: which row of `vectors` each token has"""
    offsets: np.ndarray
    """int64 [n + 1]: sentence i has the tokens `offsets[i]:offsets[i + 1]`"""


class Input(nn.Module):
    """From ids to vectors: one row per distinct word, or per token where noise tells tokens apart.

    Args:
        table: the vectors of the vocabulary.
        dropout: share of a word vector's numbers that are set to zero in training.
        word_dropout: share of words whose whole vector is set to zero in training. What remains is
            scaled up, so that the expected vector stays the same.
    """

    def __init__(self, table: Table, *, dropout: float = 0.0, word_dropout: float = 0.0) -> None:
        super().__init__()
        self.table, self.dropout, self.word_dropout = table, dropout, word_dropout

    @property
    def dim(self) -> int:
        """Length of a word's vector."""
        return int(self.table.weight.shape[1])

    def forward(self, flat: FlatIds) -> Tokens:
        """Look a batch up."""
        distinct, places = distinct_ids(flat.ids)
        vectors = self.table(distinct)
        if not self.training or not (self.dropout or self.word_dropout):
            return Tokens(vectors, places, flat.offsets)
        tokens = vectors[torch.from_numpy(places).to(vectors.device)]
        if self.dropout:
            tokens = nn.functional.dropout(tokens, self.dropout)
        if self.word_dropout:
            tokens = tokens * nn.functional.dropout(
                torch.ones_like(tokens[:, :1]), self.word_dropout
            )
        return Tokens(tokens, np.arange(len(places), dtype=np.int32), flat.offsets)


def distinct_ids(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ids, int64 ascending, and where each of `ids` stands among them, int32."""
    size = int(ids.max(initial=-1)) + 1
    seen = np.zeros(size, bool)
    seen[ids] = True
    distinct = np.flatnonzero(seen)
    place = np.empty(size, np.int32)
    place[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, place[ids]


def means(vectors: Tensor, places: np.ndarray, offsets: np.ndarray) -> Tensor:
    """The mean of each sentence's vectors, [n, dim]; zeros for an empty sentence."""
    lengths = np.diff(offsets)
    weights = np.repeat(1 / np.maximum(lengths, 1), lengths)
    return weighted_sums(vectors, places, offsets, weights)


def weighted_sums(
    vectors: Tensor, places: np.ndarray, offsets: np.ndarray, weights: np.ndarray
) -> Tensor:
    """Σ weight · vector over the tokens of each sentence.

    Args:
        vectors: [v, dim].
        places: for every token, a row of `vectors`, int32 [tokens].
        offsets: sentence i has the tokens `offsets[i]:offsets[i + 1]`, [n + 1].
        weights: [tokens].

    Returns:
        [n, dim]; differentiable in `vectors`.
    """
    if vectors.dtype in (torch.bfloat16, torch.float16):
        vectors = vectors.float()  # long sums of few digits would lose them
    return _WeightedSums.apply(vectors, places, offsets, weights)


def by_place(places: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The tokens ordered by their place, and where those of each of `size` places begin."""
    order = np.argsort(places.astype(np.uint16) if size < 65536 else places, kind="stable")
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=size), out=starts[1:])
    return order, starts


class _WeightedSums(torch.autograd.Function):
    """The sums as a sparse matrix product, and its transpose for the gradient.

    Both are one `embedding_bag`; torch's own gradient of it takes far longer on a CPU.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        vectors: Tensor,
        places: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray,
    ) -> Tensor:
        ctx.matrix = len(vectors), places, offsets, weights  # type: ignore[attr-defined]
        return _bag(vectors, places, offsets, weights)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # type: ignore[override]
        size, places, offsets, weights = ctx.matrix  # type: ignore[attr-defined]
        order, starts = by_place(places, size)
        sentence = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        return _bag(gradient, sentence[order], starts, weights[order]), None, None, None


def _bag(vectors: Tensor, places: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> Tensor:
    device = vectors.device
    return embedding_bag(
        torch.from_numpy(places).to(device),
        vectors,
        torch.from_numpy(offsets.astype(np.int32)).to(device),
        mode="sum",
        per_sample_weights=torch.from_numpy(weights).to(device, vectors.dtype),
        include_last_offset=True,
    )
