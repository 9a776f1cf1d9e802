"""The paraphrases of the corpus, by the margin loss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.train import train_embeddings


def train(
    options: EmbeddingOptions, folder: Path, *, shards: Sequence[str], seed: int
) -> dict[str, Any]:
    """Train on the pairs of the corpus."""
    return train_embeddings(shards, folder, options, seed=seed)
