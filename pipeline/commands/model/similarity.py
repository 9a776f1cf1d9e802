"""`paraloom similarity`: scores pairs of sentences."""

import sys

from paraloom.models.embeddings.applications.embed import similarity_lines
from paraloom.models.embeddings.model import load_encoder
from paraloom.pipeline.commands.console import binary
from paraloom.pipeline.commands.options import Model


def command(model: Model) -> None:
    """Read two tab-separated sentences per line on standard input, and print one score per line.

    By default, the score is the cosine of the two vectors. If the model was trained on dot
    products, the score is the dot product. If the model predicts labels, the score is the predicted
    label.
    """
    streams = binary(sys.stdin, "input"), binary(sys.stdout, "output")
    encoder = load_encoder(model)
    similarity_lines(encoder.embed, *streams, encoder.compare)
