"""The registry of encoders. To add an encoder, write a subclass of `TokenEncoder` in this folder
and add it to `ENCODERS`. `paraloom.papers.systems` registers further encoders."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from paraloom.models.embeddings.encoders.base import Average, Encoder, Mixed, TokenEncoder
from paraloom.models.embeddings.encoders.embedding_matrix import EmbeddingMatrix
from paraloom.models.embeddings.encoders.ragged_batches import Input
from paraloom.models.embeddings.encoders.recurrent import Build, recurrent
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Kind

INITIAL_SCALE = 0.1  # standard deviation of random word vectors, chosen on STS 2012–2014


class Entry(NamedTuple):
    """An encoder in the registry."""

    meaning: str  # one-line description for the documentation
    build: Build
    kind: Kind = "words"  # kind of its vocabulary


ENCODERS: dict[str, Entry] = {
    "word-avg": Entry("mean of the vectors", lambda input, options: Average(input)),
    "trigram-avg": Entry("mean of the vectors", lambda input, options: Average(input), "trigrams"),
    "sentence-trigram-avg": Entry(
        "mean of the vectors", lambda input, options: Average(input), "sentence-trigrams"
    ),
    "lstm": Entry("last state of an LSTM", recurrent("last")),
    "lstm-avg": Entry("mean of an LSTM's states", recurrent("mean")),
    "bilstm": Entry("last states of LSTMs in both directions", recurrent("last", both=True)),
    "bilstm-avg": Entry("mean of the states of both directions", recurrent("mean", both=True)),
    "bilstm-max": Entry("maximum of the states of both directions", recurrent("max", both=True)),
}


def names(model: str) -> list[str]:
    """Split a model's name at each `+`. Raise a ValueError if an encoder is unknown."""
    found = [name.strip() for name in model.split("+")]
    for name in found:
        if name not in ENCODERS:
            known = ", ".join(ENCODERS)
            raise ValueError(
                f"model: no encoder is named {name!r}; choose among {known}; "
                "`paraloom papers` has more"
            )
    return found


def kinds(model: str) -> list[Kind]:
    """Return the kinds of the vocabularies that a model's encoders read."""
    return list(dict.fromkeys(ENCODERS[name].kind for name in names(model)))


def build_encoder(
    options: EmbeddingOptions, vectors: Mapping[Kind, Tensor], *, outputs: int | None = None
) -> Encoder:
    """Build the encoder `options.model`, with random weights from torch's global generator.

    Args:
        vectors: initial word vectors by kind, [size, dim]. The encoder copies them.
        outputs: number of words that the task's decoders predict; None: all words.
    """
    noise = {"dropout": options.dropout, "word_dropout": options.word_dropout}
    built: list[TokenEncoder] = []
    for _, build, kind in (ENCODERS[name] for name in names(options.model)):
        input = Input(EmbeddingMatrix(vectors[kind].clone()), kind, **noise)
        built.append(build(input, options))
    encoder = built[0] if len(built) == 1 else Mixed(built, options.mix)
    size = max(map(len, vectors.values()))
    completed: Encoder = options.completed(encoder, size if outputs is None else outputs)
    return completed


def check_encoder(options: EmbeddingOptions) -> None:
    """Check the options by building the encoder for an almost empty vocabulary."""
    with torch.device("meta"):  # which allocates no memory
        build_encoder(options, {kind: torch.zeros(3, options.dim) for kind in kinds(options.model)})


def embedding_matrices(encoder: nn.Module) -> dict[str, EmbeddingMatrix]:
    """Return the embedding matrices of an encoder by module name."""
    modules = encoder.named_modules()
    return {name: module for name, module in modules if isinstance(module, EmbeddingMatrix)}


def random_vectors(size: int, dim: int, seed: int) -> Tensor:
    """Return random initial vectors, [size, dim]. Row 0 represents unknown words and is zero."""
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(size, dim, generator=generator) * INITIAL_SCALE
    vectors[0] = 0
    return vectors
