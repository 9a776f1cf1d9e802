"""The training loop that all tasks share: order, checkpoints, clipping, optimiser steps."""

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.models.embeddings.encoders.base import Encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Sentences
from paraloom.models.embeddings.training.checkpoint import TrainingFolder
from paraloom.models.errors import UserError
from paraloom.models.progress import meter

Batch = TypeVar("Batch")
Produced = TypeVar("Produced", covariant=True)

LOG_EVERY = 100  # steps between two lines of metrics.jsonl, at least


class Pool(Protocol[Produced]):
    """Examples that are shuffled together, and how many were left out of them."""

    identical: int = 0
    empty: int = 0

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.int64]) -> Produced:
        """The examples of `rows`, in their order."""


class Source(Protocol[Produced]):
    """Examples to train on: an epoch is a sequence of pools, each small enough for memory."""

    rows: int  # in an epoch, left-out ones included
    name: str  # for messages

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Produced]]:
        """The pools of an epoch from number `first` on; the same at every call."""


class Memory(Generic[Batch]):
    """Examples in memory: one pool."""

    def __init__(self, pool: Pool[Batch], name: str) -> None:
        self.pool, self.name = pool, name
        self.rows = len(pool) + pool.identical + pool.empty

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Batch]]:
        """The only pool, always the same."""
        if first == 0:
            yield self.pool


@dataclass
class Progress:
    """The position in the training; with weights, moments and seed, training resumes from it."""

    step: int = 0
    epoch: int = 0
    pool: int = 0  # of the epoch
    row: int = 0  # of the pool's order
    pairs: int = 0  # that an epoch trains on
    identical: int = 0
    empty: int = 0
    seen: int = 0  # pairs trained on, in all epochs
    best: float | None = None  # development score
    loss: float = math.nan  # mean since the last line of the metrics
    seconds: float = 0.0
    lines: int = 0  # of the metrics
    evaluations: list[dict[str, float]] = field(default_factory=list)
    """On development data: `epoch`, from 1, `step` and `development`, the score."""
    chosen: int = -1  # index of the best evaluation

    @property
    def rate(self) -> float:
        """Pairs per second."""
        return round(self.seen / max(self.seconds, 1e-9), 1)


class Trainer(Generic[Batch]):
    """Training of one encoder on one source of examples; subclasses define `train_on`.

    All randomness of a step (noise, order, scrambling) depends only on the seed and the position of
    the step, so that no random state has to be saved.

    Args:
        encoder: on the device where it is to be trained; a `head` is trained with it.
        folder: where to write checkpoints and metrics.
    """

    algorithm: Literal["adam", "sgd", "adadelta"] = "adam"
    trains_words = True

    def __init__(
        self,
        encoder: Encoder,
        source: Source[Batch],
        options: EmbeddingOptions,
        seed: int,
        *,
        folder: TrainingFolder | None = None,
        head: nn.Module | None = None,
    ) -> None:
        self.encoder, self.source, self.options, self.seed = encoder, source, options, seed
        self.folder, self.head = folder, head
        self.progress = Progress()
        self.losses: list[Tensor] = []  # since the last line of the metrics
        matrices = embedding_matrices(encoder)
        self.device = next(iter(matrices.values())).weight.device
        self.matrices = matrices if self.trains_words else {}
        for matrix in self.matrices.values():
            matrix.prepare(
                options.learning_rate, towards=options.lambda_w, adam=self.algorithm == "adam"
            )
        self.weights = dict(encoder.named_parameters())
        if head is not None:
            self.weights |= dict(head.named_parameters(prefix="head"))
        self.optimizer = self._optimizer() if self.weights else None

    @property
    def weight_decay(self) -> float:
        """What the optimiser adds to the gradient of W, over W: 2 λ, the gradient of λ ‖W‖²."""
        return 2 * self.options.lambda_c

    def _optimizer(self) -> torch.optim.Optimizer:
        weights = list(self.weights.values())
        if self.algorithm == "adadelta":
            return torch.optim.Adadelta(weights, 1.0, rho=0.95, eps=1e-6)
        kind = torch.optim.Adam if self.algorithm == "adam" else torch.optim.SGD
        rate = self.options.learning_rate
        return kind(weights, rate, weight_decay=self.weight_decay, fused=True)

    def fit(self) -> Progress:
        """Train to the end; then only the encoder with its final weights is left."""
        options, progress = self.options, self.progress
        total = self.source.rows * options.epochs
        if options.steps is not None:
            total = options.steps * options.batch_size
        started = time.monotonic() - progress.seconds
        self._train_mode(True)
        with meter("train", total, "pairs") as bar, torch.random.fork_rng():
            while not self.finished:
                for pool in self.source.epoch(progress.epoch, progress.pool):
                    if progress.epoch == progress.row == 0:
                        progress.pairs += len(pool)
                        progress.identical += pool.identical
                        progress.empty += pool.empty
                    random = np.random.default_rng([self.seed, progress.epoch, progress.pool])
                    order = random.permutation(len(pool))
                    while progress.row < len(pool) and not self.finished:
                        rows = order[progress.row : progress.row + self.batch_rows]
                        before = progress.step
                        self.train_on(pool.take(rows))
                        progress.row += len(rows)
                        progress.seen += len(rows)
                        progress.seconds = time.monotonic() - started
                        self.report(before)
                        if progress.epoch and options.steps is None:  # left-out pairs are known now
                            total = progress.pairs * options.epochs
                        bar.set(progress.seen, total=total, note=f"loss {progress.loss:.4f}")
                    progress.pool, progress.row = progress.pool + 1, 0
                    if self.finished:
                        break
                progress.epoch, progress.pool = progress.epoch + 1, 0
                if progress.step == 0:
                    raise UserError(
                        f"{self.source.name}: nothing to train on: {progress.identical:,} pairs "
                        f"are identical, {progress.empty:,} have an empty side, "
                        f"{progress.pairs:,} no negative"
                    )
                self.end_epoch()
        for matrix in self.matrices.values():
            matrix.finalize()
        self._train_mode(False)
        return progress

    @property
    def finished(self) -> bool:
        """Whether all steps or epochs are done."""
        if self.options.steps is not None:
            return self.progress.step >= self.options.steps
        return self.progress.epoch >= self.options.epochs

    @property
    def batch_rows(self) -> int:
        """Examples that the next call of `train_on` gets."""
        return self.options.batch_size

    def train_on(self, batch: Batch) -> None:
        """Train on a batch: one step or several."""
        raise NotImplementedError

    def seed_noise(self) -> None:
        """Seed the noise of the next step."""
        if self.options.dropout or self.options.word_dropout:
            torch.manual_seed((self.seed << 40) + self.progress.step)

    def encode(self, sentences: Sentences) -> Tensor:
        """Vectors of a batch, float32, computed in the precision of the options."""
        with self.precision():
            vectors: Tensor = self.encoder(sentences).float()
        return vectors

    def precision(self) -> AbstractContextManager[Any]:
        """Context in which matrix products have the precision of the options."""
        half = self.options.precision == "bfloat16" and self.device.type == "cuda"
        return torch.autocast("cuda", torch.bfloat16) if half else nullcontext()

    def optimizer_step(self, loss: Tensor) -> None:
        """One step down the gradient of a loss."""
        torch.autograd.backward(loss)
        self.add_gradients()
        if self.options.clip is not None:
            read = [matrix.read for matrix in self.matrices.values()]
            leaves = [*self.weights.values(), *(rows for rows in read if rows is not None)]
            torch.nn.utils.clip_grad_norm_(leaves, self.options.clip)
        if self.optimizer is not None:
            self.optimizer.step()
            self.optimizer.zero_grad()
        for matrix in self.matrices.values():
            matrix.step()
        self.progress.step += 1
        self.losses.append(loss.detach())

    def add_gradients(self) -> None:
        """Add gradients of a regularisation that are clipped with those of the loss; none here."""

    def report(self, before: int) -> None:
        """After `train_on`, called at the step `before`: check the losses, log, save."""
        options, progress = self.options, self.progress
        if not self.losses:
            return
        losses = torch.stack(self.losses).tolist()
        for step, loss in enumerate(losses, progress.step - len(losses) + 1):
            if not math.isfinite(loss):
                raise UserError(
                    f"the loss is {loss} at step {step}: lower learning_rate "
                    f"({options.learning_rate}) or check the initial vectors"
                )
        progress.loss = float(np.mean(losses))

        def due(every: int) -> bool:
            return before // every < progress.step // every

        if due(LOG_EVERY):
            self.losses = []
            self.log(loss=progress.loss)
        if self.folder is not None and due(options.checkpoint_every):
            self.folder.save(progress.step, asdict(progress), self.tensors())

    def end_epoch(self) -> None:
        """What a subclass does after each epoch."""

    def tensors(self) -> dict[str, Tensor]:
        """The weights with their moments, and the losses since the last line of the metrics."""
        state = {"losses": torch.stack(self.losses) if self.losses else torch.empty(0)}
        for name, matrix in self.matrices.items():
            state.update({f"{name}.{key}": value for key, value in matrix.state().items()})
        for name, weight in self.weights.items():
            state[name] = weight.detach()
            assert self.optimizer is not None
            for key, value in self.optimizer.state[weight].items():
                if value is not None:
                    state[f"adam.{key}.{name}"] = value
        return state

    def restore(self, progress: Progress, state: dict[str, Tensor]) -> None:
        """Resume from the `tensors` at this progress.

        Raises:
            KeyError, ValueError: the tensors belong to another encoder.
        """
        for name, matrix in self.matrices.items():
            own = {key: state[f"{name}.{key}"] for key in matrix.state()}
            if own["weight"].shape != matrix.weight.shape:
                found, expected = (tuple(w.shape) for w in (own["weight"], matrix.weight))
                raise ValueError(f"a vocabulary and vectors of shape {found}, not {expected}")
            matrix.restore(own, progress.step)
        for name, weight in self.weights.items():
            assert self.optimizer is not None
            weight.data.copy_(state[name])
            if self.algorithm == "adam":
                self.optimizer.state[weight] = {
                    key: state[f"adam.{key}.{name}"].to(weight.device)
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
        self.progress, self.losses = progress, list(state["losses"].to(self.device))

    def metrics(self) -> dict[str, Any]:
        """The counts, times and last loss of the training."""
        progress = self.progress
        return {
            "pairs": progress.pairs,
            "identical": progress.identical,
            "empty": progress.empty,
            "steps": progress.step,
            "seconds": round(progress.seconds, 2),
            "pairs_per_second": progress.rate,
            "loss": progress.loss,
        }

    def log(self, **values: float) -> None:
        """Write a line of metrics."""
        if self.folder is not None:
            at = self.progress
            position = {"step": at.step, "epoch": at.epoch, "pairs": at.seen}
            self.folder.log({**position, "pairs_per_second": at.rate, **values})
            at.lines += 1

    def _train_mode(self, train: bool) -> None:
        for module in (self.encoder, self.head):
            if module is not None:
                module.train(train)


def better(score: float, best: float | None) -> bool:
    """Whether a score is the best so far; NaN is never better than a number."""
    return best is None or score > best or (math.isnan(best) and not math.isnan(score))
