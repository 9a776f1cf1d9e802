"""Training on labelled pairs, with the KL objective of Tai et al. 2015 (W&G 2017, 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paraloom.models.embeddings.applications.evaluation import agreement, correlation, scores
from paraloom.models.embeddings.comparison import ComparedModel
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.encoders.ragged_batches import Input
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Sentences, join_all, take_all
from paraloom.models.embeddings.tasks import RunInputs
from paraloom.models.embeddings.training.initial_model import device_of, new_model, seeded
from paraloom.models.embeddings.training.trainer import Memory, Pool, Trainer
from paraloom.models.embeddings.vocabulary import ids_by_kind
from paraloom.models.errors import UserError
from paraloom.papers.datasets.splits import split
from paraloom.papers.heads import Distribution
from paraloom.papers.options import SystemOptions
from paraloom.papers.scrambling import scrambled


@dataclass
class LabelledExamples(Pool["LabelledExamples"]):
    """n labelled pairs as word ids."""

    first: Sentences
    second: Sentences
    labels: Tensor  # float32 [n]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, data: LabelledPairs, model: SentenceEncoder) -> Self:
        """Convert a data set to the ids of a model."""
        kinds = model.vocabularies
        first, second = (ids_by_kind(kinds, side) for side in (data.first, data.second))
        return cls(first, second, torch.from_numpy(data.scores).float())

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return the pairs with the indices `rows`, in this order."""
        first, second = (take_all(side, rows) for side in (self.first, self.second))
        return type(self)(first, second, self.labels[rows])


class LabelTrainer(Trainer[LabelledExamples]):
    """Trains a model with a head, and selects the best epoch.

    `lambda_w` regularises word vectors towards their initial values. `lambda_c` regularises other
    weights towards zero, or the encoder towards its initial weights (`anchored`). Adadelta does not
    train word vectors.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        train: LabelledPairs,
        development: LabelledPairs,
        seed: int,
        *,
        algorithm: Literal["adam", "adadelta"] = "adam",
        anchored: bool = False,
        patience: int | None = None,
    ) -> None:
        assert model.head is not None
        self.model, self.label_head = model, model.head
        self.adam = self.trains_words = algorithm == "adam"

        def evaluate() -> float:
            return agreement(model.embed, development, model.compare).pearson

        super().__init__(
            model.encoder,
            Memory(LabelledExamples.of(train, model), f"{train.group} {train.name}"),
            model.options,
            seed,
            head=model.head,
            evaluate=evaluate,
        )
        self.patience = patience
        self.initial = {
            name: weight.detach().clone()
            for name, weight in self.weights.items()
            if anchored and name.startswith("encoder.")
        }

    def new_optimizer(self, weights: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Return Adam or Adadelta, without regularisation (see `add_gradients`)."""
        if self.adam:
            return torch.optim.Adam(weights, self.options.learning_rate, fused=True)
        return torch.optim.Adadelta(weights, 1.0, rho=0.95, eps=1e-6)

    def seed_noise(self) -> None:
        """Seed the dropout at the beginning of an epoch."""
        if self.progress.row == 0:
            torch.manual_seed((self.seed << 20) + self.progress.epoch)

    def train_on(self, batch: LabelledExamples) -> None:
        """Make one gradient step."""
        sides = [batch.first, batch.second]
        if self.options.scramble:
            position = [self.seed, self.progress.epoch, self.progress.row]
            assert isinstance(self.options, SystemOptions)
            sides = scrambled(sides, self.options, np.random.default_rng(position))
        self.seed_noise()
        first, second = self.encode(join_all(sides)).chunk(2)
        self.optimizer_step(self.label_head.loss(first, second, batch.labels.to(self.device)))

    def add_gradients(self) -> None:
        """Add the gradient of the regularisation λ_c ‖θ − θ₀‖²."""
        if self.options.lambda_c:
            for name, weight in self.weights.items():
                if weight.grad is not None:
                    away = weight.detach() - self.initial.get(name, 0.0)
                    weight.grad.add_(away, alpha=2 * self.options.lambda_c)

    def metrics(self) -> dict[str, Any]:
        """Return the selected epoch, its score on the development pairs, and the time."""
        found = self.evaluations()
        kept = {key: found[key] for key in ("development", "best_epoch", "epochs")}
        return {**kept, "seconds": round(self.progress.seconds, 2)}


def label_errors(model: ComparedModel, sets: Sequence[LabelledPairs]) -> dict[str, Any]:
    """Return the errors and correlations of predicted labels, by data set and as a `mean`."""
    found: dict[str, Any] = {}
    for data in sets:
        predicted = scores(model.embed, data, model.compare)
        found[f"{data.group} {data.name}"] = {
            "pairs": len(data),
            **correlation(predicted, data.scores)._asdict(),
            "mse": float(np.mean((predicted - data.scores) ** 2)),
        }
    if len(found) > 1:
        keys = ("pearson", "spearman", "mse")
        found["mean"] = {key: float(np.mean([of[key] for of in found.values()])) for key in keys}
    return found


SHAPE = ("model", "dim", "hidden", "cell", "combine", "mix", "tags")
"""The options that are taken from a loaded encoder, because they determine its weights."""


def train(
    options: SystemOptions, folder: Path, *, run: RunInputs, seed: int, language: str
) -> dict[str, Any]:
    """Train a model on labelled pairs, and return the metrics of the training."""
    section = options.similarity
    assert section is not None
    data = split(section.data, held_out=section.held_out)
    texts = [data.train.first, data.train.second]
    if section.start:
        model = trained_model(options, section.start)
    else:
        model = new_model(options, texts, seed, language=language)
    lowest, highest = data.train.scale
    with seeded(seed):
        head = Distribution(dim=model.dim, units=section.units, lowest=lowest, highest=highest)
    model.head = head.to(device_of(options))
    trainer = LabelTrainer(model, data.train, data.development, seed, anchored=bool(section.start))
    trainer.fit()
    metrics = {
        "pairs": len(data.train),
        "development_pairs": len(data.development),
        **trainer.metrics(),
        "test": label_errors(model.named("model"), data.test),
    }
    model.save(folder, metrics={**metrics, "history": trainer.progress.evaluations}, texts=texts)
    return metrics


def trained_model(options: EmbeddingOptions, folder: str) -> SentenceEncoder:
    """Load a trained model, to continue its training with other options."""
    if options.vector_file:
        raise UserError(
            f"embeddings.initial_vectors: the model {folder} has its own vectors; remove this key, "
            "or the key `start`"
        )
    found = load_encoder(folder, device=str(device_of(options)))
    shape = {name: getattr(found.options, name) for name in SHAPE}
    for module in found.encoder.modules():
        if isinstance(module, Input):
            module.dropout, module.word_dropout = options.dropout, options.word_dropout
    return SentenceEncoder(found.encoder, found.vocabularies, options.replace(**shape))
