"""Encoders by name. A new one is a module here and a line in `ENCODERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from models.embeddings.encoders.average import Average
from models.embeddings.options import EmbeddingOptions
from models.embeddings.table import Table
from models.embeddings.vocabulary import Kind

Build = Callable[[EmbeddingOptions, Table], nn.Module]

ENCODERS: dict[str, tuple[Kind, Build]] = {
    "word-avg": ("words", lambda options, table: Average(table, "words")),
    "trigram-avg": ("trigrams", lambda options, table: Average(table, "trigrams")),
}
"""Name → the vocabulary it reads, and how to build it around its table of vectors."""


def kinds(model: str) -> list[Kind]:
    """The vocabularies that the encoder of this name reads.

    Raises:
        ValueError: no encoder has this name.
    """
    if model not in ENCODERS:
        raise ValueError(f"model: no encoder is named {model!r}, there are {', '.join(ENCODERS)}")
    return [ENCODERS[model][0]]


def build_encoder(options: EmbeddingOptions, vectors: Mapping[Kind, Tensor]) -> nn.Module:
    """The encoder `options.model` around word vectors, by kind of vocabulary."""
    kind, build = ENCODERS[options.model]
    return build(options, Table(vectors[kind]))


def tables(encoder: nn.Module) -> dict[str, Table]:
    """The tables of word vectors in an encoder, by the name of the module."""
    return {name: part for name, part in encoder.named_modules() if isinstance(part, Table)}


def random_vectors(size: int, dim: int, seed: int) -> Tensor:
    """Vectors to start from, [size, dim]; that of the unknown word (row 0) is zero."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(size, dim, generator=generator) * INITIAL_SCALE
    vectors[0] = 0
    return vectors


INITIAL_SCALE = 0.1
