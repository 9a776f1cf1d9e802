"""Labelled pairs on which the errors of two models differ most (W&G 2017, 5.1)."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.table import Table

from paraloom.models.embeddings.applications.evaluation import scores
from paraloom.models.embeddings.comparison import ComparedModel, Scores
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from paraloom.papers.analyses.options import Sts, labelled_pairs
from paraloom.pipeline.commands.console import console
from paraloom.pipeline.commands.options import JsonFile, Sick, write_json


class Disagreement(NamedTuple):
    """A pair, its label, and the scores of both models, rescaled to the scale of the label."""

    data: str
    first: str
    second: str
    label: float
    scores: tuple[float, float]


def disagreements(
    models: tuple[ComparedModel, ComparedModel], data: Sequence[LabelledPairs], *, count: int = 10
) -> tuple[list[Disagreement], list[Disagreement]]:
    """Find the pairs for which the absolute errors of the models differ most.

    Cosines are rescaled linearly, so that their range in a data set becomes the range of labels.
    Return up to `count` pairs on which the second model is better, and up to `count` pairs on which
    the first model is better.
    """
    found: list[tuple[float, Disagreement]] = []  # (advantage of the second model, pair)
    for pairs in data:
        both = [
            _on_scale(model, scores(model.embed, pairs, model.compare), pairs) for model in models
        ]
        first, second = (np.abs(scored - pairs.scores) for scored in both)
        name = f"{pairs.group} {pairs.name}"
        texts = pairs.first.to_pylist(), pairs.second.to_pylist()
        scored = zip(both[0].tolist(), both[1].tolist(), strict=True)
        gains = (first - second).tolist()
        for gain, *row in zip(gains, *texts, pairs.scores.tolist(), scored, strict=True):
            found.append((gain, Disagreement(name, *row)))
    found.sort(key=lambda of: of[0])
    for_second = [pair for gain, pair in found[::-1][:count] if gain > 0]
    return for_second, [pair for gain, pair in found[:count] if gain < 0]


def _on_scale(model: ComparedModel, scored: Scores, data: LabelledPairs) -> Scores:
    if model.scale == data.scale:
        return scored
    lowest, highest = data.scale
    spread = np.ptp(scored)
    share = (scored - scored.min()) / spread if spread else np.full(len(scored), 0.5)
    return np.asarray(lowest + share * (highest - lowest))


def command(
    model: Annotated[
        list[str], typer.Option(metavar="DIR", help="Folder of an encoder. Give --model twice.")
    ],
    count: Annotated[
        int, typer.Option(metavar="N", help="Number of pairs to print for each model.")
    ] = 10,
    sts: Sts = None,
    sick: Sick = None,
    json: JsonFile = None,
) -> None:
    """Print the pairs on which one model is much nearer to the human label than the other model."""
    if len(model) != 2:
        raise UserError("give --model twice, once for each model")
    data = labelled_pairs(sts, sick)
    first, second = (load_encoder(folder).named(folder) for folder in model)
    found = disagreements((first, second), data, count=count)
    for better, worse, pairs in ((second, first, found[0]), (first, second, found[1])):
        table = Table("data", "sentences", "label", *model)
        table.title = f"{better.name} is closer to the label than {worse.name}"
        for pair in pairs:
            scores = (f"{score:.1f}" for score in pair.scores)
            texts = f"{pair.first}\n{pair.second}"
            table.add_row(pair.data, texts, f"{pair.label:.1f}", *scores, end_section=True)
        console().print(table)
    results = zip(reversed(model), found, strict=True)
    write_json(json, {name: [pair._asdict() for pair in pairs] for name, pairs in results})
