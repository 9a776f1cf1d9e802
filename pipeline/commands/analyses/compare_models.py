"""`paraloom compare-models`: where two models disagree most (W&G 2017, 5.1)."""

from typing import Annotated

import typer
from rich.table import Table

from paraloom.models.embeddings.applications.compare_models import disagreements
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import JsonFile, Sick, Sts, labelled_pairs, write_json
from paraloom.pipeline.console import console


def command(
    model: Annotated[
        list[str], typer.Option(metavar="DIR", help="Folder of an encoder; give it twice.")
    ],
    count: Annotated[int, typer.Option(metavar="N", help="Pairs to print for each model.")] = 10,
    sts: Sts = None,
    sick: Sick = None,
    json: JsonFile = None,
) -> None:
    """Print the pairs on which two models disagree most, relative to human labels."""
    if len(model) != 2:
        raise UserError("compare-models: give --model twice, once for each of the two")
    data = labelled_pairs("compare-models", sts, sick)
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
