"""The training tasks of the papers' other systems; `paraloom.papers.options` lists them."""

from paraloom.models.embeddings.tasks import train
from paraloom.papers import systems  # noqa: F401  # makes them known

__all__ = ["train"]
