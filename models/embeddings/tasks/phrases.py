"""Phrases by a contrastive margin on dot products (pairwise GRU; Zhou, Huang & Ji 2017).

With `model: gru` the vector of a phrase is the GRU's last state; any other encoder can take its
place. Words come from `initial_vectors`, where there are some; then pairs with other words are left
out, as in the paper, and else the words are those of the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from models.embeddings.applications.phrase_tests import choose
from models.embeddings.datasets.phrases import read_phrase_pairs, split
from models.embeddings.options import EmbeddingOptions
from models.embeddings.ragged_columns import Sentences, join_all, take_all
from models.embeddings.training.data import Memory, Pairs, learnable
from models.embeddings.training.loss import contrastive_loss
from models.embeddings.training.supervised import new_model
from models.embeddings.training.trainer import Trainer
from models.errors import UserError
from models.text.vectors import read_vectors


def train(
    options: EmbeddingOptions, folder: Path, *, shards: Sequence[str], seed: int
) -> dict[str, Any]:
    """Train on a phrase table.

    Returns:
        pairs, held_out (pairs of which one phrase is new), choose_among_100 on these (none if they
        are too few), and what the trainer counts.
    """
    section = options.phrases
    assert section is not None
    initial = read_vectors(options.initial_vectors) if options.initial_vectors else None
    pairs = read_phrase_pairs(section.table, initial and initial.words)
    train, test = split(pairs, section.held_out)
    random = np.random.default_rng(seed)
    some = np.sort(random.permutation(len(train))[: round(section.share * len(train))])
    train = train.take(some)
    if not len(train):
        raise UserError(f"{section.table}: no pair is left to train on (share {section.share})")
    model = new_model(options, list(train), seed)
    found = learnable(train.left, train.right, model.vocabularies)
    chosen = replace(options, learning_rate=section.learning_rate, clip=section.clip, mega_batch=1)
    trainer = PhraseTrainer(
        model.encoder,
        Memory(found, section.table),
        chosen,
        seed,
        margin=section.margin,
        drawn=section.drawn,
    )
    trainer.fit()
    trainer.settle()
    others = pairs.phrases()
    enough = len(test) and len(others) > 100
    metrics = {
        **trainer.metrics(),
        "held_out": len(test),
        "choose_among_100": choose(model.named("model"), test, others) if enough else None,
    }
    model.save(folder, metrics=metrics)
    return metrics


@dataclass
class PhraseTrainer(Trainer):
    """Plain gradient steps; every mini-batch draws the phrases that all its pairs are held against.

    Drawing them anew for every pair has the same expected gradient, and takes a hundred times as
    many vectors.
    """

    plain_steps: ClassVar[bool] = True
    margin: float = 1.0
    drawn: int = 29
    phrases: Sentences = field(init=False)
    keys: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        (pairs,) = self.source.epoch(0)
        stack = join_all([pairs.left, pairs.right])
        _, first = np.unique(pairs.keys.ravel(), return_index=True)
        self.phrases = take_all(stack, np.sort(first))
        self.keys = pairs.keys.ravel()[np.sort(first)]

    def train_mega_batch(self, pairs: Pairs) -> None:
        """One step on a mini-batch."""
        random = np.random.default_rng([self.seed, self.at.step])
        rows = random.choice(len(self.keys), min(self.drawn, len(self.keys)), replace=False)
        others = take_all(self.phrases, rows)
        self.disturb()
        vectors = self.encode(join_all([pairs.left, pairs.right, others]))
        n = len(pairs)
        left, right, drawn = vectors.split([n, n, len(rows)])
        own = (self.keys[rows] == pairs.keys[:, :, None]).any(axis=0)
        allowed = torch.from_numpy(~own).to(vectors)
        self.descend(contrastive_loss(left, right, drawn, allowed, self.margin))
