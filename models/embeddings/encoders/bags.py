"""Sums over sentences without padding: flat ids of vectors and offsets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn.functional import embedding_bag

from models.embeddings.vocabulary import FlatIds


class Words(NamedTuple):
    """A batch of n sentences as places in the list of its distinct words."""

    distinct: np.ndarray  # int64 [distinct]: ids of the vocabulary, ascending
    places: np.ndarray  # int32 [tokens]: where each token stands in `distinct`
    offsets: np.ndarray  # int64 [n + 1]


def distinct_words(flat: FlatIds) -> Words:
    """Number the words of a batch anew, from 0, so that it needs few rows of a table."""
    size = int(flat.ids.max(initial=-1)) + 1
    seen = np.zeros(size, bool)
    seen[flat.ids] = True
    distinct = np.flatnonzero(seen)
    place = np.empty(size, np.int32)
    place[distinct] = np.arange(len(distinct), dtype=np.int32)
    return Words(distinct, place[flat.ids], flat.offsets)


def mean_weights(offsets: np.ndarray) -> np.ndarray:
    """For every token 1 / the length of its sentence: float32 [tokens]."""
    lengths = np.diff(offsets)
    return np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)


def weighted_sums(
    vectors: Tensor, places: np.ndarray, offsets: np.ndarray, weights: np.ndarray
) -> Tensor:
    """Σ weight · vector over the tokens of each sentence; an empty one gives zeros.

    Args:
        vectors: [v, dim].
        places: for every token, a row of `vectors`, int32 [tokens].
        offsets: sentence i has the tokens `offsets[i]:offsets[i + 1]`, [n + 1].
        weights: float32 [tokens].

    Returns:
        [n, dim]; differentiable in `vectors`.
    """
    return _WeightedSums.apply(vectors, places, offsets, weights)


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
        ctx.shape, ctx.matrix = len(vectors), (places, offsets, weights)  # type: ignore[attr-defined]
        return _bag(vectors, places, offsets, weights)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # type: ignore[override]
        places, offsets, weights = ctx.matrix  # type: ignore[attr-defined]
        size = ctx.shape  # type: ignore[attr-defined]
        order = np.argsort(places.astype(np.uint16) if size < 65536 else places, kind="stable")
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(places, minlength=size), out=starts[1:])
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
