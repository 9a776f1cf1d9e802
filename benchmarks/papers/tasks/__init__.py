"""The training tasks of the papers' other systems, which `paraloom.papers.options` lists."""

from paraloom.models.embeddings.tasks import train
from paraloom.papers import systems  # noqa: F401  # registers the tasks

__all__ = ["train"]
