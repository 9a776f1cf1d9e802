"""The training tasks of the papers' other systems (see `paraloom.papers.options`)."""

from paraloom.models.embeddings.tasks import train
from paraloom.papers import systems  # noqa: F401  # registers the tasks

__all__ = ["train"]
