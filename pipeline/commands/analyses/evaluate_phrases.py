"""`paraloom evaluate-phrases`: models on tests of phrase similarity."""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer
from rich.table import Table

from paraloom.models.embeddings.applications.phrase_tests import (
    evaluate_phrases,
    read_semeval2013,
    read_turney2012,
)
from paraloom.models.embeddings.datasets.phrases import read_phrase_pairs, split
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import JsonFile, Models, write_json
from paraloom.pipeline.console import console
from paraloom.pipeline.notices import notify, of_models


def _split_of(
    encoders: Sequence[tuple[str, SentenceEncoder]],
) -> Literal["pairs", "phrases"]:
    """How the training of all these models held out pairs."""
    sections = {folder: encoder.options.phrases for folder, encoder in encoders}
    found = {folder: of.split for folder, of in sections.items() if of is not None}
    if len(set(found.values())) > 1:
        each = ", ".join(f"{folder}: {how}" for folder, how in found.items())
        raise UserError(
            f"evaluate-phrases: --held-out means other pairs for each model, by "
            f"embeddings.phrases.split ({each}); evaluate them one by one"
        )
    return next(iter(found.values()), "pairs")


def command(
    model: Models,
    table: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Phrase table: choose the paraphrase of each phrase."),
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Only the pairs of the table that training with embeddings.phrases.held_out at "
            "this share held out for the test, by the model's own embeddings.phrases.split.",
        ),
    ] = None,
    semeval2013: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="SemEval-2013 5(a): en.trainSet.…Instances-v2 and so on."),
    ] = None,
    turney2012: Annotated[
        str | None, typer.Option(metavar="FILE", help="Turney 2012: `stem | solution | …`.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Give at least one of --table, --semeval2013 and --turney2012."""
    if not (table or semeval2013 or turney2012):
        raise UserError("evaluate-phrases: give --table, --semeval2013 or --turney2012")
    pairs = read_phrase_pairs(table) if table else None
    semeval = read_semeval2013(semeval2013) if semeval2013 else None
    questions = read_turney2012(turney2012) if turney2012 else None
    encoders = [(folder, load_encoder(folder)) for folder in model]
    if pairs is not None and held_out is not None:
        pairs = split(pairs, held_out, _split_of(encoders)).test
    if semeval or questions:
        notify(of_models(encoders, "the tests of SemEval and Turney are"))
    results = {
        folder: evaluate_phrases(
            encoder.named(folder), pairs=pairs, semeval=semeval, questions=questions
        )
        for folder, encoder in encoders
    }
    shown = Table("test", *results, caption="× 100")
    first, *_ = results.values()
    for test, measures in first.items():
        for measure in measures:
            cells = (f"{of[test][measure]:.1f}" for of in results.values())
            shown.add_row(f"{test}: {measure}", *cells)
    console().print(shown)
    write_json(json, results)
