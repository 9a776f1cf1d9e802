"""`paraloom neighbours`: the sentences of a file that are nearest to those on standard input."""

import sys
from typing import Annotated

import typer

from paraloom.models.embeddings.applications.embed import neighbour_lines
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import Model


def command(
    model: Model,
    collection: Annotated[
        str, typer.Option("--in", metavar="FILE", help="One sentence a line; plain or gzip.")
    ],
    count: Annotated[int, typer.Option(metavar="N", help="Neighbours of each sentence.")] = 5,
) -> None:
    """Read one sentence a line on standard input, print the nearest sentences of the file.

    Similarity is the cosine of the two vectors, or exp(−L1 distance) for a model of the task
    malstm.
    """
    if count < 1:
        raise UserError("neighbours: --count must be at least 1")
    encoder = load_encoder(model)
    neighbour_lines(
        encoder.embed,
        sys.stdin.buffer,
        collection,
        sys.stdout.buffer,
        count=count,
        rank=encoder.rank,
    )
