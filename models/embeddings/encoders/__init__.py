"""Encoders by name. A new one is a module in this folder and a line in `ENCODERS`.

An encoder is a `nn.Module` with `dim`, that turns `Sentences` into vectors, [n, dim]. It looks
words up through an `Input`, so that any encoder gets dropout and cheap, exact updates of its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.embeddings.encoders.average import Average, Total
from models.embeddings.encoders.context import Context
from models.embeddings.encoders.gran import GRAN
from models.embeddings.encoders.gru import GRU, NormalisedGRU
from models.embeddings.encoders.lstm import LSTM
from models.embeddings.encoders.mixed import Mixed
from models.embeddings.encoders.ragged_batches import Input
from models.embeddings.encoders.recurrent import Pooling, Recurrent
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.table import Table
from models.embeddings.vocabulary import Kind

INITIAL_SCALE = 0.1  # standard deviation of random vectors; chosen on STS 2012–2014

Build = Callable[[Input, EmbeddingOptions], nn.Module]


class Entry(NamedTuple):
    """An encoder of the list."""

    build: Build
    kind: Kind = "words"  # the vocabulary it reads


def _lstm(pooling: Pooling, *, both: bool = False) -> Build:
    def build(input: Input, options: EmbeddingOptions) -> nn.Module:
        networks = [_direction(input, options, backward) for backward in (False, True)[: 1 + both]]
        return Recurrent(input, networks, pooling, options.combine)

    return build


def _gran(variant: int, *, both: bool = False) -> Build:
    def build(input: Input, options: EmbeddingOptions) -> nn.Module:
        networks = [
            GRAN(_direction(input, options, backward), input.dim, variant)
            for backward in (False, True)[: 1 + both]
        ]
        return Recurrent(input, networks, "last" if variant in (3, 4) else "mean", options.combine)

    return build


def _gru(input: Input, options: EmbeddingOptions) -> nn.Module:
    if options.cell == "peephole":
        raise ValueError("cell: peephole, but a GRU has none; it is torch or normalised")
    kind = NormalisedGRU if options.cell == "normalised" else GRU
    return Recurrent(input, [kind(input.dim, options.hidden or input.dim)], "last")


def _direction(input: Input, options: EmbeddingOptions, backward: bool) -> LSTM:
    if options.cell == "normalised":
        raise ValueError("cell: normalised, but only a GRU can be; an LSTM is torch or peephole")
    size = options.hidden or input.dim
    return LSTM(input.dim, size, peepholes=options.cell == "peephole", backward=backward)


ENCODERS: dict[str, Entry] = {
    "word-avg": Entry(lambda input, options: Average(input, "words")),
    "word-sum": Entry(lambda input, options: Total(input, "words")),
    "trigram-avg": Entry(lambda input, options: Average(input, "trigrams"), "trigrams"),
    "gru": Entry(_gru),
    "lstm": Entry(_lstm("last")),
    "lstm-avg": Entry(_lstm("mean")),
    "bilstm": Entry(_lstm("last", both=True)),
    "bilstm-avg": Entry(_lstm("mean", both=True)),
    "bilstm-max": Entry(_lstm("max", both=True)),
    "gran": Entry(_gran(1)),
    "gran-2": Entry(_gran(2)),
    "gran-3": Entry(_gran(3)),
    "gran-4": Entry(_gran(4)),
    "gran-5": Entry(_gran(5)),
    "bigran": Entry(_gran(1, both=True)),
}


def parts(model: str) -> list[str]:
    """The encoders of a name, which `+` joins.

    Raises:
        ValueError: no encoder has one of these names.
    """
    names = [name.strip() for name in model.split("+")]
    for name in names:
        if name not in ENCODERS:
            there = ", ".join(ENCODERS)
            raise ValueError(f"model: no encoder is named {name!r}, there are {there}")
    return names


def kinds(model: str) -> list[Kind]:
    """The vocabularies that the encoder of this name reads.

    Raises:
        ValueError: no encoder has this name.
    """
    return list(dict.fromkeys(ENCODERS[name].kind for name in parts(model)))


def build_encoder(
    options: EmbeddingOptions, vectors: Mapping[Kind, Tensor], *, outputs: int | None = None
) -> nn.Module:
    """The encoder `options.model`; each of its parts gets a copy of the vectors of its vocabulary.

    Of the task `context` it comes with decoders, which predict the first `outputs` words (None:
    all). Other weights come from torch's global random generator.

    Raises:
        ValueError: the options do not fit each other.
    """
    built = []
    for name in parts(options.model):
        entry = ENCODERS[name]
        table = Table(vectors[entry.kind].clone())
        noise = {"dropout": options.dropout, "word_dropout": options.word_dropout}
        built.append(entry.build(Input(table, **noise), options))
    encoder = built[0] if len(built) == 1 else Mixed(built, options.mix)
    if options.task != "context":
        return encoder
    section = options.context
    assert section is not None
    if not isinstance(encoder, Average | Recurrent) or kinds(options.model) != ["words"]:
        raise ValueError(f"model: {options.model}, but task context needs one encoder of words")
    return Context(
        encoder,
        decoder=section.decoder,
        outputs=len(vectors["words"]) if outputs is None else outputs,
        vector=section.vector,
        steps=section.steps,
    )


def check_encoder(options: EmbeddingOptions) -> None:
    """Build the encoder for no words.

    Raises:
        ValueError: there is no such encoder, or the options do not fit each other.
    """
    build_encoder(options, {kind: torch.zeros(3, options.dim) for kind in kinds(options.model)})


def tables(encoder: nn.Module) -> dict[str, Table]:
    """The tables of word vectors in an encoder, by the name of the module."""
    return {name: part for name, part in encoder.named_modules() if isinstance(part, Table)}


def random_vectors(size: int, dim: int, seed: int) -> Tensor:
    """Vectors to start from, [size, dim]; that of the unknown word (row 0) is zero."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(size, dim, generator=generator) * INITIAL_SCALE
    vectors[0] = 0
    return vectors
