"""Training of an encoder and its head on labelled pairs. Development data select the epoch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paraloom.models.embeddings.applications.evaluation import agreement, correlation, scores
from paraloom.models.embeddings.comparison import ComparedModel
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.ragged_columns import Sentences, join_all, take_all
from paraloom.models.embeddings.training.trainer import Memory, Pool, Trainer
from paraloom.models.embeddings.vocabulary import ids_by_kind
from paraloom.papers.options import SystemOptions
from paraloom.papers.scrambling import scrambled


@dataclass
class LabelledExamples(Pool["LabelledExamples"]):
    """n labelled pairs as ids."""

    first: Sentences
    second: Sentences
    labels: Tensor  # float32 [n]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, data: LabelledPairs, model: SentenceEncoder) -> Self:
        """Convert a data set to ids of the model's vocabularies."""
        first, second = (
            ids_by_kind(model.vocabularies, side) for side in (data.first, data.second)
        )
        return cls(first, second, torch.from_numpy(data.scores).float())

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return the pairs of `rows`, in their order."""
        return type(self)(
            take_all(self.first, rows), take_all(self.second, rows), self.labels[rows]
        )


class LabelTrainer(Trainer[LabelledExamples]):
    """Trains a model with a head. `fit` leaves the weights of the best epoch. `lambda_w` pulls the
    word vectors towards their initial values. `lambda_c` pulls all other weights towards zero or,
    with `anchored`, towards their initial values. With Adadelta, word vectors are not trained."""

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
        """Return Adam or Adadelta. `add_gradients` adds the regularisation."""
        if self.adam:
            return torch.optim.Adam(weights, self.options.learning_rate, fused=True)
        return torch.optim.Adadelta(weights, 1.0, rho=0.95, eps=1e-6)

    def seed_noise(self) -> None:
        """Seed the noise at the beginning of an epoch."""
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
        """Add the gradient of λ ‖θ − θ₀‖², where θ₀ is zero for the weights of the head."""
        if self.options.lambda_c:
            for name, weight in self.weights.items():
                if weight.grad is not None:
                    initial = self.initial.get(name)
                    away = weight.detach() if initial is None else weight.detach() - initial
                    weight.grad.add_(away, alpha=2 * self.options.lambda_c)

    def metrics(self) -> dict[str, Any]:
        """Return the selected epoch and its score on the development data."""
        found = self.evaluations()
        kept = {key: found[key] for key in ("development", "best_epoch", "epochs")}
        return {**kept, "seconds": round(self.progress.seconds, 2)}


def label_errors(model: ComparedModel, sets: Sequence[LabelledPairs]) -> dict[str, Any]:
    """Return Pearson, Spearman and mean squared error of predicted labels, by data set and on
    average."""
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
