"""`paraloom embed`: sentences to vectors."""

import sys

from paraloom.pipeline.commands.options import Model


def command(model: Model) -> None:
    """Read one sentence a line on standard input, write a NumPy array (.npy) to standard output."""
    # torch takes seconds to import, which --help need not wait for.
    from paraloom.models.embeddings.applications.embed import embed_lines
    from paraloom.models.embeddings.model import load_encoder

    embed_lines(load_encoder(model).embed, sys.stdin.buffer, sys.stdout.buffer)
