"""Phrases by a contrastive margin on dot products (pairwise GRU; Zhou, Huang & Ji 2017).

With `model: gru` the vector of a phrase is the GRU's last state; any other encoder can be used. If
there are `initial_vectors`, pairs with other words are left out, as in the paper.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from models.embeddings.applications.phrase_tests import choose
from models.embeddings.datasets.phrases import read_phrase_pairs, split
from models.embeddings.encoders.base import Encoder
from models.embeddings.options import EmbeddingOptions
from models.embeddings.ragged_columns import join_all, take_all
from models.embeddings.tasks import RunInputs
from models.embeddings.training.data import Pairs, learnable
from models.embeddings.training.initial_model import new_model
from models.embeddings.training.loss import contrastive_loss
from models.embeddings.training.trainer import Memory, Trainer
from models.errors import UserError
from models.text.vectors import load_vectors


def train(
    options: EmbeddingOptions, folder: Path, *, run: RunInputs, seed: int, language: str
) -> dict[str, Any]:
    """Train on a phrase table.

    The metrics are those of the trainer, `held_out` (pairs with a phrase that training does not
    contain), and `choose_among_100` on these (None if they are too few).
    """
    section = options.phrases
    assert section is not None
    initial = load_vectors(Path(options.vector_file)) if options.vector_file else None
    pairs = read_phrase_pairs(section.table, initial and initial.words)
    train, test = split(pairs, section.held_out)
    random = np.random.default_rng(seed)
    rows = np.sort(random.permutation(len(train))[: round(section.fraction * len(train))])
    train = train.take(rows)
    if not len(train):
        raise UserError(
            f"{section.table}: no pair is left to train on (fraction {section.fraction})"
        )
    model = new_model(options, list(train), seed, language=language, initial=initial)
    usable = Memory(learnable(train.left, train.right, model.vocabularies), section.table)
    chosen = options.replace(learning_rate=section.learning_rate, clip=section.clip)
    trainer = PhraseTrainer(
        model.encoder, usable, chosen, seed, margin=section.margin, samples=section.samples
    )
    trainer.fit()
    others = pairs.phrases()
    enough = len(test) and len(others) > 100
    metrics = {
        **trainer.metrics(),
        "held_out": len(test),
        "choose_among_100": choose(model.named("model"), test, others) if enough else None,
    }
    model.save(folder, metrics=metrics, texts=list(train))
    return metrics


class PhraseTrainer(Trainer[Pairs]):
    """Plain gradient steps; each mini-batch samples phrases that all its pairs are compared with.

    Sampling phrases for every pair has the same expected gradient, but needs a hundred times as
    many vectors.
    """

    algorithm = "sgd"

    def __init__(
        self,
        encoder: Encoder,
        source: Memory[Pairs],
        options: EmbeddingOptions,
        seed: int,
        *,
        margin: float = 1.0,
        samples: int = 29,
    ) -> None:
        super().__init__(encoder, source, options, seed)
        self.margin, self.samples = margin, samples
        pairs = source.pool.take(np.arange(len(source.pool)))
        _, first = np.unique(pairs.keys.ravel(), return_index=True)
        rows = np.sort(first)
        self.phrases = take_all(join_all([pairs.left, pairs.right]), rows)
        self.keys = pairs.keys.ravel()[rows]

    def train_on(self, batch: Pairs) -> None:
        """One step on a mini-batch."""
        random = np.random.default_rng([self.seed, self.progress.step])
        rows = random.choice(len(self.keys), min(self.samples, len(self.keys)), replace=False)
        others = take_all(self.phrases, rows)
        self.seed_noise()
        vectors = self.encode(join_all([batch.left, batch.right, others]))
        n = len(batch)
        left, right, samples = torch.split(vectors, [n, n, len(rows)])
        own = (self.keys[rows] == batch.keys[:, :, None]).any(axis=0)
        allowed = torch.from_numpy(~own).to(vectors)
        self.optimizer_step(contrastive_loss(left, right, samples, allowed, self.margin))
