"""PARAGRAM word vectors from phrase pairs: Word Avg with the margin loss (Wieting et al. 2016)."""

from pathlib import Path
from typing import Any

import torch

from paraloom.models.embeddings.datasets.phrases import phrase_blocks
from paraloom.models.embeddings.encoders import build_encoder, embedding_matrices, random_vectors
from paraloom.models.embeddings.options import ParagramOptions
from paraloom.models.embeddings.training.data import learnable, stack
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.embeddings.training.trainer import Memory
from paraloom.models.embeddings.vocabulary import Vocabulary
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
    """Train word vectors on phrase pairs and write them in text form (`word v1 … vd`).

    `read_phrases` reads the file `phrases`; `vectors` is gzip if its name ends in .gz. Returns the
    trainer's metrics and the number of words.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    columns = list(phrase_blocks(phrases))
    words = Vocabulary.build((side for sides in columns for side in sides), language=language)
    pairs = stack([learnable(left, right, {"words": words}) for left, right in columns])
    if not len(pairs):
        raise UserError(f"{phrases}: no pair of different phrases to train on")
    chosen = options.training()
    encoder = build_encoder(chosen, {"words": random_vectors(len(words), options.dim, seed)})
    trainer = PairTrainer(encoder, Memory(pairs, str(phrases)), chosen, seed)
    trainer.fit()
    (matrix,) = embedding_matrices(encoder).values()
    # Row 0, for unknown words, is untrained; readers of the file use zeros instead.
    write_vectors(vectors, words.words[1:], matrix.current().numpy()[1:])
    return {**trainer.metrics(), "words": len(words) - 1}
