"""`paraloom papers train`: `train-embeddings`, with the tasks of the papers' other systems."""

from paraloom.papers import tasks  # noqa: F401  # makes them known
from paraloom.pipeline.commands.corpus.train_embeddings import command

__all__ = ["command"]
