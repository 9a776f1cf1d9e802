"""Comparison of an encoder's vectors with its decoders' states (Zhelezniak et al. 2018)."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from rich.table import Table

from paraloom.models.embeddings.applications.evaluation import LabelCorrelation, correlation
from paraloom.models.embeddings.comparison import Scores, Vectors, cosines, dots
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.errors import UserError
from paraloom.papers.analyses.options import Sts, labelled_pairs
from paraloom.papers.encoders.context import Context, Vector
from paraloom.papers.options import SystemOptions
from paraloom.pipeline.commands.console import console
from paraloom.pipeline.commands.options import JsonFile, Model, Sick, write_json

_COMPARE = {"cosine": cosines, "dot": dots}


class Space(NamedTuple):
    """A kind of sentence vector."""

    vector: Vector
    steps: int = 0
    """Number of words for which decoders are unrolled; 0: use the output of the encoder."""

    def __str__(self) -> str:
        return f"{self.vector} {self.steps}" if self.steps else self.vector


Correlations = dict[str, dict[str, Any]]
"""Mean correlations × 100 by group of data sets: Pearson (`dot` and `cosine`) and Spearman
(`dot_spearman` and `cosine_spearman`)."""


def in_space(model: SentenceEncoder, space: Space) -> SentenceEncoder:
    """Return a model with the same weights and another kind of sentence vector."""
    encoder = copy.copy(_context(model))
    if space.steps and not encoder.decoders:
        raise UserError(f"{space}: a bow decoder has no states to unroll")
    encoder.vector, encoder.steps = space.vector, space.steps or encoder.steps
    assert isinstance(model.options, SystemOptions) and model.options.context is not None
    chosen = model.options.context.replace(vector=encoder.vector, steps=encoder.steps)
    options = model.options.replace(context=chosen)
    return SentenceEncoder(encoder, model.vocabularies, options, model.head)


def _agree(scores: Scores, pairs: LabelledPairs) -> LabelCorrelation:
    return correlation(scores, pairs.scores)


def compare_spaces(
    model: SentenceEncoder,
    data: Sequence[LabelledPairs],
    *,
    steps: int = 10,
    agree: Callable[[Scores, LabelledPairs], Any] = _agree,
) -> dict[Space, Correlations]:
    """Return the correlations in each space, for decoders unrolled for 1 to `steps` words (Tables
    1, 4 and 5)."""
    found: dict[Space, Correlations] = {}
    for pairs in data:
        text = pa.concat_arrays([pairs.first, pairs.second])
        for space, vectors in _vectors(model, text, steps):
            first, second = np.split(vectors, 2)
            for name, compare in _COMPARE.items():
                agreed, of = agree(compare(first, second), pairs), found.setdefault(space, {})
                for key, value in ((name, agreed.pearson), (f"{name}_spearman", agreed.spearman)):
                    of.setdefault(key, {}).setdefault(pairs.group, []).append(value)
    for groups in (groups for of in found.values() for groups in of.values()):
        groups |= {group: np.mean(values, axis=0) for group, values in groups.items()}
    return found


def _vectors(
    model: SentenceEncoder, text: pa.StringArray, steps: int
) -> Iterator[tuple[Space, Vectors]]:
    yield Space("encoder"), in_space(model, Space("encoder")).embed(text)
    if not _context(model).decoders:
        return
    states = in_space(model, Space("concat", steps)).embed(text, batch_size=1024)
    states = states.reshape(len(text), 2, steps, -1)
    for k in range(1, steps + 1):
        first = states[:, :, :k]
        yield Space("concat", k), first.reshape(len(text), -1)
        yield Space("mean", k), first.mean(axis=(1, 2))


def _context(model: SentenceEncoder) -> Context:
    if not isinstance(model.encoder, Context):
        raise UserError(
            f"a {model.options.model} of task {model.options.task} has no decoders; "
            "train an encoder with embeddings.task: context"
        )
    return model.encoder


def command(
    model: Model,
    steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of words to unroll decoders for.")
    ] = 10,
    sts: Sts = None,
    sick: Sick = None,
    json: JsonFile = None,
) -> None:
    """Compare the encoder's vectors with the decoders' states, by correlation with human labels.

    The model must have been trained with `embeddings.task: context`.
    """
    data = labelled_pairs(sts, sick)
    found = compare_spaces(load_encoder(model), data, steps=steps)
    groups = dict.fromkeys(pairs.group for pairs in data)
    for compare, title in (("dot", "Dot product"), ("cosine", "Cosine")):
        table = Table("vector", *groups, title=title, caption="mean Pearson / Spearman × 100")
        for space, of in found.items():
            pearson, spearman = of[compare], of[f"{compare}_spearman"]
            table.add_row(str(space), *(f"{pearson[g]:.1f} / {spearman[g]:.1f}" for g in groups))
        console().print(table)
    write_json(json, {str(space): of for space, of in found.items()})
