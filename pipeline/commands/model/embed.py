"""`paraloom embed`: computes the vectors of sentences."""

import sys

from paraloom.pipeline.commands.console import binary
from paraloom.pipeline.commands.options import Model


def command(model: Model) -> None:
    """Read one sentence per line on standard input, and write a NumPy array to standard output."""
    # These modules import torch, which takes seconds and is not needed for --help.
    from paraloom.models.embeddings.applications.embed import embed_lines
    from paraloom.models.embeddings.model import load_encoder

    streams = binary(sys.stdin, "input"), binary(sys.stdout, "output")
    embed_lines(load_encoder(model).embed, *streams)
