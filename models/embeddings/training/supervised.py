"""Training an encoder and its head on labelled pairs; development data chooses the epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from models.embeddings.applications.evaluation import Correlation, correlation, scores
from models.embeddings.datasets.similarity import LabelledPairs
from models.embeddings.encoders import build_encoder, kinds, tables
from models.embeddings.encoders.ragged_batches import Input
from models.embeddings.model import SentenceEncoder, load_encoder, weights
from models.embeddings.options import EmbeddingOptions
from models.embeddings.ragged_columns import Sentences, join_all, take_all
from models.embeddings.training.train import device_of, first_vectors, with_words_of
from models.embeddings.training.trainer import better
from models.embeddings.vocabulary import Kind, Vocabulary, ids_by_kind
from models.errors import UserError
from models.progress import meter
from models.text.vectors import read_vectors

SHAPE = ("model", "dim", "hidden", "cell", "combine", "mix", "tags")
"""The options that an encoder's weights depend on."""
Optimiser = Literal["adam", "adadelta"]


@dataclass
class Examples:
    """n labelled pairs as ids."""

    first: Sentences
    second: Sentences
    labels: Tensor
    """float32 [n]"""

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, data: LabelledPairs, model: SentenceEncoder) -> Examples:
        """A data set in the model's vocabularies."""
        first, second = (
            ids_by_kind(model.vocabularies, side) for side in (data.first, data.second)
        )
        return cls(first, second, torch.from_numpy(data.scores).float())


@dataclass
class Training:
    """Training of a model with a head, and what it was like.

    The word vectors are trained with Adam (`table.Table`), or stay as they are; all other weights
    with either optimiser. `l2` and `l2_words` pull both towards the weights they start from, where
    the model is a trained one, or else the weights towards zero.

    Args:
        model: with a head; on the device where it is to be trained.
        options: epochs, batch_size, learning_rate (of Adam), clip, l2, l2_words.
        seed: of the order of the pairs and of all noise.
        optimiser: of all weights but word vectors, which only Adam trains.
        keep: pull the encoder's weights towards those it has now, not towards zero.
        patience: end when so many epochs brought nothing better; None trains all of them.
    """

    model: SentenceEncoder
    options: EmbeddingOptions
    seed: int
    optimiser: Optimiser = "adam"
    keep: bool = False
    patience: int | None = None
    best: float | None = None
    """Pearson × 100 on the development data, of the epoch that was chosen"""
    best_epoch: int = 0
    seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    """epoch, loss and development score, an entry an epoch"""

    def __post_init__(self) -> None:
        assert self.model.head is not None
        self.encoder, self.head = self.model.encoder, self.model.head
        options = self.options
        own = tables(self.encoder).values()
        self.device = next(iter(own)).weight.device
        encoder = list(self.encoder.parameters())
        self.weights = [*encoder, *self.head.parameters()]
        anchors = [weight.detach().clone() if self.keep else None for weight in encoder]
        self.anchors = [*anchors, *(None for _ in self.head.parameters())]
        self.tables = list(own) if self.optimiser == "adam" else []
        for table in self.tables:
            table.prepare(options.learning_rate, towards=options.l2_words)
        self.steps: torch.optim.Optimizer | None = None
        if self.weights:
            self.steps = (
                torch.optim.Adam(self.weights, options.learning_rate, fused=True)
                if self.optimiser == "adam"
                else torch.optim.Adadelta(self.weights, 1.0, rho=0.95, eps=1e-6)
            )

    def fit(self, train: LabelledPairs, development: LabelledPairs) -> None:
        """Train; leave the weights of the one that was best on the development data.

        Raises:
            UserError: the loss becomes something that is no number.
        """
        started = time.monotonic()
        examples = Examples.of(train, self.model)
        chosen = self._weights()
        total = len(examples) * self.options.epochs
        with meter("train", total, "pairs") as progress, torch.random.fork_rng():
            for epoch in range(self.options.epochs):
                batches = self._batches(len(examples), epoch)
                loss = float(torch.stack([self.step(examples, rows) for rows in batches]).mean())
                if not math.isfinite(loss):
                    raise UserError(
                        f"the loss is {loss} in epoch {epoch + 1}: lower learning_rate or clip"
                    )
                score = evaluate(self.model, development).pearson
                self.history.append({"epoch": epoch + 1, "loss": loss, "development": score})
                progress.set((epoch + 1) * len(examples), note=f"development {score:.1f}")
                if better(score, self.best):
                    self.best, self.best_epoch = score, epoch + 1
                    chosen = self._weights()
                elif self.patience is not None and epoch + 1 - self.best_epoch >= self.patience:
                    break
        for table in self.tables:
            table.settle()
        for module, state in zip((self.encoder, self.head), chosen, strict=True):
            module.load_state_dict(state)
            module.eval()
        self.seconds = time.monotonic() - started

    def step(self, examples: Examples, rows: np.ndarray) -> Tensor:
        """One gradient step on some rows; gives their loss."""
        self.encoder.train()
        self.head.train()
        sides = [take_all(side, rows) for side in (examples.first, examples.second)]
        first, second = self.encoder(join_all(sides)).float().chunk(2)
        loss = self.head.loss(first, second, examples.labels[rows].to(self.device))
        loss.backward()
        self._pull()
        if self.options.clip is not None:
            read = [table.read for table in self.tables]
            leaves = [*self.weights, *(rows for rows in read if rows is not None)]
            torch.nn.utils.clip_grad_norm_(leaves, self.options.clip)
        if self.steps is not None:
            self.steps.step()
            self.steps.zero_grad()
        for table in self.tables:
            table.step()
        return loss.detach()

    def _pull(self) -> None:
        """The gradient of ½ λ ‖θ − θ₀‖²; θ₀ is zero for a weight without an anchor."""
        if self.options.l2:
            for weight, anchor in zip(self.weights, self.anchors, strict=True):
                if weight.grad is not None:
                    away = weight.detach() if anchor is None else weight.detach() - anchor
                    weight.grad.add_(away, alpha=self.options.l2)

    def _batches(self, n: int, epoch: int) -> Iterator[np.ndarray]:
        torch.manual_seed((self.seed << 20) + epoch)
        order = np.random.default_rng([self.seed, epoch]).permutation(n)
        size = self.options.batch_size
        return (order[start : start + size] for start in range(0, n, size))

    def _weights(self) -> list[dict[str, Tensor]]:
        return [
            {name: tensor.clone() for name, tensor in weights(module).items()}
            for module in (self.encoder, self.head)
        ]

    def metrics(self) -> dict[str, Any]:
        """What the run was like."""
        return {
            "development": self.best,
            "best_epoch": self.best_epoch,
            "epochs": len(self.history),
            "seconds": round(self.seconds, 2),
        }


def new_model(
    options: EmbeddingOptions, texts: Iterable[pa.StringArray], seed: int
) -> SentenceEncoder:
    """An untrained encoder that knows the words of some texts, and of the initial vectors."""
    initial = read_vectors(options.initial_vectors) if options.initial_vectors else None
    vocabularies: dict[Kind, Vocabulary] = {}
    for kind in kinds(options.model):
        built = Vocabulary.build(
            texts,
            kind=kind,
            max_size=options.max_vocabulary,
            min_count=options.min_count,
            tags=options.tags,
        )
        if kind == "words" and initial is not None:
            built = with_words_of(initial, built, options.max_vocabulary)
        vocabularies[kind] = built
    vectors = {
        kind: first_vectors(vocabulary, options, initial if kind == "words" else None, seed)
        for kind, vocabulary in vocabularies.items()
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = build_encoder(options, vectors).to(device_of(options))
    return SentenceEncoder(encoder, vocabularies, options)


def trained_model(options: EmbeddingOptions, folder: str) -> SentenceEncoder:
    """The encoder of a model folder, to be trained as `options` say.

    Raises:
        UserError: the folder cannot be read, or `options` want other vectors.
    """
    if options.initial_vectors:
        raise UserError(
            f"embeddings.initial_vectors: the model {folder} brings its own vectors; take one away"
        )
    found = load_encoder(folder, device=str(device_of(options)))
    shape = {name: getattr(found.options, name) for name in SHAPE}
    for part in found.encoder.modules():
        if isinstance(part, Input):
            part.dropout, part.word_dropout = options.dropout, options.word_dropout
    return SentenceEncoder(found.encoder, found.vocabularies, replace(options, **shape))


def evaluate(model: SentenceEncoder, data: LabelledPairs) -> Correlation:
    """How well a model's predictions agree with the labels of a data set."""
    return correlation(scores(model.embed, data, model.compare), data.scores)


def report(model: SentenceEncoder, sets: Sequence[LabelledPairs]) -> dict[str, Any]:
    """Pearson, Spearman and mean squared error of predicted labels, by data set and their means."""
    found: dict[str, Any] = {}
    for data in sets:
        predicted = scores(model.embed, data, model.compare)
        agreed = correlation(predicted, data.scores)
        found[f"{data.group} {data.name}"] = {
            "pairs": len(data.scores),
            "pearson": agreed.pearson,
            "spearman": agreed.spearman,
            "mse": float(np.mean((predicted - data.scores) ** 2)),
        }
    if len(found) > 1:
        found["mean"] = {
            key: float(np.mean([of[key] for of in found.values()]))
            for key in ("pearson", "spearman", "mse")
        }
    return found
