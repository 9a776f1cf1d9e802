"""`paraloom gate-analysis`: which words a GRAN's gates pass (W&G 2017, 5.2)."""

import sys
from typing import Annotated

import pyarrow as pa
import typer
from rich.columns import Columns
from rich.table import Table

from paraloom.models.embeddings.applications.embed import line_batches
from paraloom.models.embeddings.applications.gate_analysis import gate_norms
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.text.parses import Parser
from paraloom.pipeline.commands.options import JsonFile, Model, write_json
from paraloom.pipeline.console import console
from paraloom.pipeline.notices import notify, of_parser


def command(
    model: Model,
    spacy: Annotated[
        str,
        typer.Option(
            metavar="PIPELINE", help="Name or folder of a spaCy pipeline that tags and parses."
        ),
    ],
    least: Annotated[
        int, typer.Option(metavar="N", help="Leave out labels with fewer words.")
    ] = 10,
    max_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Leave out sentences with more tokens.", min=1),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Print the gates' mean L1 norm by part of speech, by dependency label, and by both.

    Reads one sentence a line on standard input.
    """
    encoder, parser = load_encoder(model), Parser(spacy)
    notify(of_parser("--spacy", parser.language, encoder.language))
    batches = (pa.array(batch, pa.string()) for batch in line_batches(sys.stdin.buffer))
    norms_by_kind = gate_norms(encoder, parser, batches, max_tokens=max_tokens)._asdict()
    tables = []
    for kind, norms in norms_by_kind.items():
        table = Table(kind.replace("_", " "), "words", "mean norm")
        for label, moments in norms.items():
            if moments.count >= least:
                table.add_row(label, f"{moments.count:,}", f"{moments.mean:.2f}")
        tables.append(table)
    console().print(Columns(tables))
    results = {
        kind: {
            label: {"words": of.count, "mean": of.mean, "deviation": of.deviation}
            for label, of in norms.items()
        }
        for kind, norms in norms_by_kind.items()
    }
    write_json(json, results)
