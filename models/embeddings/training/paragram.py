"""Training of PARAGRAM word vectors with the margin loss (Wieting et al., 2016)."""

from pathlib import Path
from typing import Any

import torch

from paraloom.models.embeddings.datasets.phrases import phrase_blocks
from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.models.embeddings.options import ParagramOptions
from paraloom.models.embeddings.training.data import learnable, stack
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.embeddings.training.trainer import Memory
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.text.vectors import write_vectors


def train_paragram(
    phrases: Path | str,
    vectors: Path | str,
    options: ParagramOptions,
    *,
    seed: int,
    language: str = ENGLISH,
    threads: int | None = None,
) -> dict[str, Any]:
    """Train word vectors on phrase pairs, and write the vectors as text (`word v1 … vd`).
    `phrases` is a file that `read_phrases` can read. Return the metrics and the number of words."""
    if threads is not None:
        torch.set_num_threads(threads)
    columns = list(phrase_blocks(phrases))
    chosen, sides = options.training(), (side for block in columns for side in block)
    model = new_model(chosen, sides, seed, language=language)
    pairs = stack([learnable(left, right, model.vocabularies) for left, right in columns])
    if not len(pairs):
        raise UserError(f"{phrases}: no pair of different phrases to train on")
    trainer = PairTrainer(model.encoder, Memory(pairs, str(phrases)), chosen, seed)
    trainer.fit()
    (matrix,) = embedding_matrices(model.encoder).values()
    words = model.vocabularies["words"].words[1:]
    # Row 0 represents unknown words and was not trained.
    write_vectors(vectors, words, matrix.current().numpy()[1:])
    return {**trainer.metrics(), "words": len(words)}
