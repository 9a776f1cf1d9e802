"""Paraphrase pairs, as `paraloom train-embeddings`, with the variants of scrambling."""

from pathlib import Path
from typing import Any

from paraloom.models.embeddings.tasks import RunInputs, paraphrases
from paraloom.papers.options import SystemOptions
from paraloom.papers.scrambling import VariantTrainer


def train(
    options: SystemOptions, folder: Path, *, run: RunInputs, seed: int, language: str
) -> dict[str, Any]:
    """Train on the pairs of the corpus or of files."""
    return paraphrases.train(
        options, folder, run=run, seed=seed, language=language, trainer=VariantTrainer
    )
