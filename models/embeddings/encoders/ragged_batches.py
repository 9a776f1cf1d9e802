"""Batches of token vectors without padding, and their sums and maxima by sentence."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import embedding, embedding_bag

from paraloom.models.embeddings.encoders.embedding_matrix import EmbeddingMatrix, on_device
from paraloom.models.embeddings.ragged_columns import Kind, RaggedIds, offsets_of


class RaggedBatch(NamedTuple):
    """The tokens of n sentences, and the v vectors to which the tokens refer."""

    vectors: Tensor  # [v, dim]
    rows: NDArray[np.int32]  # [tokens]: row of each token in `vectors`
    offsets: NDArray[np.int64]  # [n + 1]: sentence i has the tokens `offsets[i]:offsets[i + 1]`


class Input(nn.Module):
    """Looks up one vector per distinct word or, in training with dropout, one vector per token.

    In training, `dropout` zeroes a share of the vectors' components, and `word_dropout` zeroes the
    vectors of a share of the tokens. Other values are scaled up to keep the expected vector.
    Do not rename `table`: the names of saved weights contain it.
    """

    def __init__(
        self,
        table: EmbeddingMatrix,
        kind: Kind = "words",
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.table, self.dropout, self.word_dropout = table, dropout, word_dropout
        self.kind: Kind = kind

    @property
    def dim(self) -> int:
        """Length of a word vector."""
        return int(self.table.weight.shape[1])

    def forward(self, column: RaggedIds) -> RaggedBatch:
        """Look up the vectors of a batch of sentences."""
        distinct, rows = distinct_ids(column.ids)
        vectors = self.table(distinct)
        if not self.training or not (self.dropout or self.word_dropout):
            return RaggedBatch(vectors, rows, column.offsets)
        tokens = vectors_at(vectors, rows)
        if self.dropout:
            tokens = nn.functional.dropout(tokens, self.dropout)
        if self.word_dropout:
            tokens = tokens * nn.functional.dropout(
                torch.ones_like(tokens[:, :1]), self.word_dropout
            )
        return RaggedBatch(tokens, np.arange(len(rows), dtype=np.int32), column.offsets)


def vectors_at(vectors: Tensor, rows: NDArray[np.integer]) -> Tensor:
    """Return the vectors with the indices `rows`, [rows, dim]. Their gradient is reproducible,
    unlike the gradient of `vectors[rows]`."""
    return embedding(on_device(rows, vectors.device), vectors)


def distinct_ids(ids: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the distinct ids in ascending order, and the index of each id among them."""
    size = int(ids.max(initial=-1)) + 1
    seen = np.zeros(size, bool)
    seen[ids] = True
    distinct = np.flatnonzero(seen)
    index = np.empty(size, np.int32)
    index[distinct] = np.arange(len(distinct), dtype=np.int32)
    return distinct, index[ids]


def means(batch: RaggedBatch) -> Tensor:
    """Return the mean of each sentence's vectors, [n, dim]; zeros for an empty sentence."""
    lengths = np.diff(batch.offsets)
    return weighted_sums(batch, np.repeat(1 / np.maximum(lengths, 1), lengths))


def maxima(batch: RaggedBatch) -> Tensor:
    """Return the component-wise maximum of each sentence's vectors, [n, dim]; zeros for an empty
    sentence."""
    device = batch.vectors.device
    words = vectors_at(batch.vectors, batch.rows)
    lengths = np.diff(batch.offsets)
    sentences = on_device(np.repeat(np.arange(len(lengths)), lengths), device)
    index = sentences.unsqueeze(1).expand_as(words)
    # torch.segment_reduce would not divide a negative gradient among equal maxima.
    zeros = words.new_zeros((len(lengths), words.shape[1]))
    return zeros.scatter_reduce(0, index, words, "amax", include_self=False)


def weighted_sums(batch: RaggedBatch, weights: NDArray[np.float64]) -> Tensor:
    """Return the weighted sum of each sentence's vectors, [n, dim]. `weights` is [tokens]."""
    sums: Tensor = _WeightedSums.apply(*batch, weights)
    return sums


def tokens_by_row(
    rows: NDArray[np.integer], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of the tokens sorted by row, [tokens], and each row's offset among these
    indices, [size + 1]."""
    order = np.argsort(rows.astype(np.uint16) if size < 65536 else rows, kind="stable")
    return order, offsets_of(np.bincount(rows, minlength=size))


class _WeightedSums(torch.autograd.Function):
    """A product of a sparse matrix and the vectors. The gradient is computed as a sparse product,
    too, because torch's gradient of `embedding_bag` is much slower on a CPU."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, *matrix: NDArray[Any]) -> Tensor:
        ctx.matrix = len(vectors), *matrix
        return _sparse_product(vectors, *matrix)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        size, rows, offsets, weights = ctx.matrix
        order, starts = tokens_by_row(rows, size)
        sentence = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        by_row = _sparse_product(gradient, sentence[order], starts, weights[order])
        return by_row, None, None, None


def _sparse_product(vectors: Tensor, *matrix: NDArray[Any]) -> Tensor:
    rows, offsets, weights = (on_device(array, vectors.device) for array in matrix)
    return embedding_bag(
        rows,
        vectors,
        offsets.int(),
        mode="sum",
        per_sample_weights=weights.to(vectors.dtype),
        include_last_offset=True,
    )
