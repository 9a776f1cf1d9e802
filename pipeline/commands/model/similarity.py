"""`paraloom similarity`: a score for each pair of sentences."""

import sys

from paraloom.models.embeddings.applications.embed import similarity_lines
from paraloom.models.embeddings.model import load_encoder
from paraloom.pipeline.commands.options import Model


def command(model: Model) -> None:
    """Read two tab-separated sentences a line on standard input, print one score a line.

    The score is the cosine of the two vectors, or the label that the model was trained to predict.
    """
    encoder = load_encoder(model)
    similarity_lines(encoder.embed, sys.stdin.buffer, sys.stdout.buffer, encoder.compare)
