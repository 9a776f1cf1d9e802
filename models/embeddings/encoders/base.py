"""Encoders: base classes, averages of word or trigram vectors, and mixtures of encoders."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from paraloom.models.embeddings.encoders.embedding_matrix import on_device
from paraloom.models.embeddings.encoders.ragged_batches import Input, RaggedBatch, means
from paraloom.models.embeddings.ragged_columns import Sentences


class Encoder(nn.Module):
    """Base class of encoders. The vector of an empty sentence is zero."""

    dim: int  # length of a sentence vector
    outputs: int | None = None  # number of words that decoders predict; None: no decoders
    reads_order: bool = True  # whether vectors depend on the order of words

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        raise NotImplementedError


class TokenEncoder(Encoder):
    """Base class of encoders that read one vocabulary. Subclasses define `encode`."""

    def __init__(self, input: Input, dim: int | None = None) -> None:
        super().__init__()
        self.input, self.dim = input, input.dim if dim is None else dim

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        return self.encode(self.input(sentences[self.input.kind]))

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Return the vectors of n sentences, [n, dim], from their tokens' vectors."""
        raise NotImplementedError


class Average(TokenEncoder):
    """Encodes a sentence as the mean of its word or trigram vectors."""

    reads_order = False

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Encode n sentences, [n, dim]. If gradients are disabled, the vectors have the
        same bits as the vectors of sentence-transformers' StaticEmbedding."""
        if torch.is_grad_enabled():
            return means(batch)
        vectors, rows, offsets = batch
        flat, starts = (on_device(array, vectors.device) for array in (rows, offsets))
        return embedding_bag(
            flat, vectors.float(), starts.int(), mode="mean", include_last_offset=True
        )


class Mixed(Encoder):
    """A mixture of encoders (ParaNMT 6.6). Their sentence vectors are added or concatenated."""

    def __init__(self, encoders: Sequence[Encoder], mix: Literal["concat", "add"]) -> None:
        super().__init__()
        sizes = [encoder.dim for encoder in encoders]
        if mix == "add" and len(set(sizes)) > 1:
            raise ValueError(f"mix: vectors of lengths {sizes} cannot be added; set mix to concat")
        # Do not rename `parts`: the names of saved weights contain it.
        self.parts, self.mix = nn.ModuleList(encoders), mix
        self.dim = sizes[0] if mix == "add" else sum(sizes)
        self.reads_order = any(encoder.reads_order for encoder in encoders)

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        vectors = [encoder(sentences) for encoder in self.parts]
        return torch.cat(vectors, dim=1) if self.mix == "concat" else sum(vectors[1:], vectors[0])
