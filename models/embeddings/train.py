"""Training of sentence embeddings (W&G 2017, Eq. 2; ParaNMT 4.2): the loop, from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.embeddings.data import Pairs, Shards, Source
from models.embeddings.encoders import build_encoder, kinds, random_vectors, tables
from models.embeddings.evaluate import agreement
from models.embeddings.flat import Sentences, count, fingerprints, join_all, take_all
from models.embeddings.loss import margin_loss
from models.embeddings.model import SentenceEncoder, weights
from models.embeddings.negatives import hardest_negatives
from models.embeddings.options import EmbeddingOptions
from models.embeddings.similarity_data import LabelledPairs, read_sts
from models.embeddings.vocabulary import Vocabulary
from models.errors import UserError
from models.progress import meter


def train_embeddings(
    shards: Sequence[str],
    folder: Path,
    options: EmbeddingOptions,
    *,
    seed: int,
    threads: int | None = None,
    development: Path | None = None,
    columns: tuple[str, str] = ("reference", "translation"),
) -> dict[str, Any]:
    """Train an encoder on pairs of sentences in Parquet files and write its folder.

    Pairs whose sides are the same after tokenisation, or of which one has no token, are skipped
    and counted.

    Args:
        shards: the Parquet files.
        folder: where the model goes; appears when it is whole.
        options: the encoder and how to train it.
        seed: the same seed and shards give the same weights on a CPU.
        threads: torch's threads; None leaves them as they are.
        development: folder of STS data (`<year>/<set>.tsv`). With it the best model by the mean
            Pearson over its data sets, taken after every epoch, is the one that is kept.
        columns: the two text columns.

    Returns:
        pairs, identical, empty, steps, seconds, pairs_per_second, loss (mean of the last epoch),
        vocabulary sizes, and with `development` its best score.

    Raises:
        UserError: no pairs, a broken shard or column, a loss that is no number; nothing is written.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    source = Shards(shards, columns, seed=seed)
    vocabularies = {
        kind: Vocabulary.build(
            source.texts(),
            kind=kind,
            max_size=options.max_vocabulary,
            min_count=options.min_count,
        )
        for kind in kinds(options.model)
    }
    source.vocabularies = vocabularies
    vectors = {
        kind: random_vectors(len(vocabulary), options.dim, seed)
        for kind, vocabulary in vocabularies.items()
    }
    model = SentenceEncoder(build_encoder(options, vectors), vocabularies, options)
    data = read_sts(development) if development else []
    trainer = Trainer(model.encoder, source, options, seed=seed)
    best = trainer.fit((lambda: development_score(model, data)) if data else None)
    if trainer.pairs == 0:
        raise UserError(
            f"{shards[0]}: no pair to train on "
            f"({trainer.identical} identical, {trainer.empty} with an empty side)"
        )
    metrics = trainer.metrics()
    metrics["vocabulary"] = {kind: len(words) for kind, words in vocabularies.items()}
    if best is not None:
        metrics["development"] = best
    model.save(folder, metrics=metrics)
    return metrics


def development_score(model: SentenceEncoder, data: Sequence[LabelledPairs]) -> float:
    """Mean Pearson × 100 over data sets."""
    return float(np.mean([agreement(model.embed, pairs).pearson for pairs in data]))


@dataclass
class Trainer:
    """Training of one encoder on one source of pairs."""

    encoder: nn.Module
    source: Source
    options: EmbeddingOptions
    seed: int
    steps: int = 0
    pairs: int = 0  # in one epoch
    identical: int = 0
    empty: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)  # of the epoch's steps

    def __post_init__(self) -> None:
        self.tables = tables(self.encoder)
        for table in self.tables.values():
            table.prepare(self.options.learning_rate)
        parameters = list(self.encoder.parameters())
        self.adam = None
        if parameters:
            self.adam = torch.optim.Adam(parameters, self.options.learning_rate, fused=True)

    def fit(self, score: Callable[[], float] | None = None) -> float | None:
        """Run all epochs; with `score`, leave the encoder as it was when that was best."""
        options = self.options
        best: float | None = None
        best_weights: dict[str, Tensor] = {}
        started = time.monotonic()
        with meter("train", self.source.rows * options.epochs, "pairs") as progress:
            for epoch in range(options.epochs):
                self.losses = []
                self.pairs = self.identical = self.empty = 0
                for number, pool in enumerate(self.source.epoch(epoch)):
                    self.pairs += len(pool)
                    self.identical += pool.identical
                    self.empty += pool.empty
                    progress.advance(pool.identical + pool.empty)
                    random = np.random.default_rng([self.seed, epoch, number])
                    order = random.permutation(len(pool))
                    size = options.mega_batch * options.batch_size
                    for start in range(0, len(pool), size):
                        rows = order[start : start + size]
                        self.train_mega_batch(pool.take(rows))
                        note = f"loss {np.mean(self.losses[-100:]):.4f}" if self.losses else ""
                        progress.advance(len(rows), note=note)
                if score is not None:
                    now = score()
                    if best is None or now > best:
                        best, best_weights = now, weights(self.encoder)
        self.seconds = time.monotonic() - started
        for table in self.tables.values():
            table.settle()
        if best_weights:
            self.encoder.load_state_dict(best_weights)
        return best

    def train_mega_batch(self, pairs: Pairs) -> None:
        """Choose everyone's negatives with the weights as they are, then step by mini-batch."""
        n, size = len(pairs), self.options.batch_size
        stack = join_all([pairs.left, pairs.right])
        negatives = self.negatives(stack, n)
        for start in range(0, n, size):
            rows = np.arange(start, min(start + size, n))
            rows = rows[(negatives[:, rows] >= 0).all(axis=0)]
            if len(rows):
                quads = np.concatenate([rows, rows + n, *negatives[:, rows]])
                self.step(take_all(stack, quads))

    def negatives(self, stack: Sentences, n: int) -> np.ndarray:
        """For n left and n right sentences the rows of their negatives, int64 [2, n]."""
        with torch.no_grad():
            vectors = torch.cat(
                [
                    self.encoder(take_all(stack, rows))
                    for rows in np.array_split(np.arange(2 * n), max(1, 2 * n // 4096))
                ]
            )
        keys = fingerprints(next(iter(stack.values())))
        return torch.stack(
            hardest_negatives(vectors[:n], vectors[n:], keys[:n], keys[n:], self.options.negatives)
        ).numpy()

    def step(self, quads: Sentences) -> None:
        """One gradient step on lefts, rights, and the negatives of either, a quarter each."""
        vectors = self.encoder(quads)
        left, right, *negative = vectors.split(count(quads) // 4)
        loss = margin_loss(left, right, negative[0], negative[1], self.options.margin)
        loss.backward()
        value = loss.item()
        if not np.isfinite(value):
            raise UserError(
                f"the loss is {value} at step {self.steps + 1}: lower learning_rate "
                f"({self.options.learning_rate}) or check the initial vectors"
            )
        if self.adam is not None:
            self.adam.step()
            self.adam.zero_grad()
        for table in self.tables.values():
            table.step()
        self.steps += 1
        self.losses.append(value)

    def metrics(self) -> dict[str, Any]:
        """What the run was like."""
        seen = self.pairs * self.options.epochs
        return {
            "pairs": self.pairs,
            "identical": self.identical,
            "empty": self.empty,
            "steps": self.steps,
            "seconds": round(self.seconds, 2),
            "pairs_per_second": round(seen / max(self.seconds, 1e-9), 1),
            "loss": float(np.mean(self.losses)) if self.losses else None,
        }
