"""Training loop of all tasks: order, checkpoints, clipping, optimiser steps."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paraloom.models.embeddings.encoders import embedding_matrices
from paraloom.models.embeddings.encoders.base import Encoder
from paraloom.models.embeddings.model import weights
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Sentences
from paraloom.models.embeddings.training.checkpoint import TrainingFolder
from paraloom.models.errors import UserError
from paraloom.models.progress import meter

Batch = TypeVar("Batch")
Produced = TypeVar("Produced", covariant=True)

LOG_EVERY = 100  # minimum steps between lines of metrics.jsonl
READ_EVERY = 20  # steps after which losses are copied from a GPU; a divisor of `LOG_EVERY`


class Pool(Protocol[Produced]):
    """Examples that are shuffled together, and counts of examples left out."""

    identical: int = 0
    empty: int = 0

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.int64]) -> Produced:
        """Select examples by `rows`, in order."""


class Source(Protocol[Produced]):
    """Examples to train on: an epoch is a sequence of pools, each small enough for memory."""

    rows: int  # examples in an epoch, including left-out ones
    name: str  # names the source in messages

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Produced]]:
        """Pools of an epoch from number `first` on; the same at every call."""


class Memory(Generic[Batch]):
    """A source with a single pool in memory."""

    def __init__(self, pool: Pool[Batch], name: str) -> None:
        self.pool, self.name = pool, name
        self.rows = len(pool) + pool.identical + pool.empty

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Batch]]:
        """The only pool."""
        if first == 0:
            yield self.pool


@dataclass
class Progress:
    """Position in the training, from which it resumes with saved weights, moments and seed."""

    step: int = 0
    epoch: int = 0
    pool: int = 0  # number of the pool in the epoch
    row: int = 0  # next row in the pool's order
    pairs: int = 0  # pairs that an epoch trains on
    identical: int = 0
    empty: int = 0
    seen: int = 0  # pairs trained on, in all epochs
    best: float | None = None  # development score
    loss: float = math.nan  # mean since the last line of the metrics
    seconds: float = 0.0
    lines: int = 0  # lines written to the metrics
    evaluations: list[dict[str, float]] = field(default_factory=list)
    """Evaluations on development data: `epoch` (from 1), `step`, and the score `development`."""
    chosen: int = -1  # index of the best evaluation

    @property
    def rate(self) -> float:
        """Pairs per second."""
        return round(self.seen / max(self.seconds, 1e-9), 1)


class Trainer(Generic[Batch]):
    """Trains one encoder on one source of examples; subclasses define `train_on`.

    A step's randomness (noise, order, scrambling) depends only on the seed and the step's position,
    so no random state is saved. Encoder and `head` stay on their device. Checkpoints and metrics
    are written into `folder`.

    `evaluate` scores the present weights on development data, after each epoch and every
    `evaluate_every` steps. `fit` then keeps the best weights, and ends after `patience` evaluations
    without a better score.
    """

    adam = True  # False: word vectors take plain gradient steps
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
        evaluate: Callable[[], float] | None = None,
    ) -> None:
        self.encoder, self.source, self.options, self.seed = encoder, source, options, seed
        self.folder, self.evaluate, self.patience = folder, evaluate, options.patience
        self.trained = nn.ModuleDict({"encoder": encoder} | ({"head": head} if head else {}))
        self.progress = Progress()
        self.losses: list[Tensor] = []  # since the last metrics line
        self.kept: dict[str, Tensor] = {}  # weights with the best score
        matrices = embedding_matrices(encoder)
        self.device = next(iter(matrices.values())).weight.device
        self.read_every = 1 if self.device.type == "cpu" else READ_EVERY
        self.matrices = matrices if self.trains_words else {}
        for matrix in self.matrices.values():
            matrix.prepare(options.learning_rate, towards=options.lambda_w, adam=self.adam)
        self.weights = dict(self.trained.named_parameters())
        self.optimizer = self.new_optimizer([*self.weights.values()]) if self.weights else None

    def new_optimizer(self, weights: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Make the optimiser for all weights except word vectors: Adam, with the gradient of λ_c
        ‖W‖²."""
        rate, decay = self.options.learning_rate, 2 * self.options.lambda_c
        return torch.optim.Adam(weights, rate, weight_decay=decay, fused=True)

    def fit(self) -> Progress:
        """Train to the end; the encoder then has the best weights (the last without `evaluate`)."""
        options, progress = self.options, self.progress
        total = self.source.rows * options.epochs
        started = time.monotonic() - progress.seconds
        self.trained.train()
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
                        if progress.epoch:  # left-out pairs are known now
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
                self.evaluate_weights()
        self.read_losses()
        for matrix in self.matrices.values():
            matrix.finalize()
        if self.kept:
            self.trained.load_state_dict(self.kept)
        self.trained.eval()
        return progress

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or `patience` evaluations brought no better score."""
        progress = self.progress
        waited = len(progress.evaluations) - 1 - progress.chosen
        if self.patience is not None and waited >= self.patience:
            return True
        return progress.epoch >= self.options.epochs

    @property
    def batch_rows(self) -> int:
        """Number of examples for the next call of `train_on`."""
        return self.options.batch_size

    def train_on(self, batch: Batch) -> None:
        """Train on a batch: one step or several."""
        raise NotImplementedError

    def seed_noise(self) -> None:
        """Seed the noise of the next step."""
        if self.options.dropout or self.options.word_dropout:
            torch.manual_seed((self.seed << 40) + self.progress.step)

    def encode(self, sentences: Sentences) -> Tensor:
        """Encode a batch."""
        vectors: Tensor = self.encoder(sentences)
        return vectors

    def optimizer_step(self, loss: Tensor) -> None:
        """Step once down the gradient of a loss."""
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
        """Hook to add regularisation gradients before clipping; adds none here."""

    def report(self, before: int) -> None:
        """After a `train_on` from step `before` on, evaluate, check losses, log and save if due."""
        options, progress = self.options, self.progress

        def due(every: int) -> bool:
            return before // every < progress.step // every

        if options.evaluate_every and due(options.evaluate_every):
            self.evaluate_weights()
        saves = self.folder is not None and due(options.checkpoint_every)
        if saves or due(self.read_every):
            self.read_losses()
        if self.losses and due(LOG_EVERY):
            self.losses = []
            self.log(loss=progress.loss)
        if self.folder is not None and saves:
            self.folder.save(progress.step, asdict(progress), self.tensors())

    def read_losses(self) -> None:
        """Check that losses since the last metrics line are finite; this waits for the GPU."""
        options, progress = self.options, self.progress
        losses = torch.stack(self.losses).tolist() if self.losses else []
        for step, loss in enumerate(losses, progress.step - len(losses) + 1):
            if not math.isfinite(loss):
                raise UserError(
                    f"the loss is {loss} at step {step}: lower learning_rate "
                    f"({options.learning_rate}) or check the initial vectors"
                )
        if losses:
            progress.loss = float(np.mean(losses))

    def evaluate_weights(self) -> None:
        """Evaluate the present weights, unless already done; keep them if they are the best."""
        progress = self.progress
        done = progress.evaluations
        if self.evaluate is None or (done and done[-1]["step"] == progress.step):
            return
        score = self.evaluate()
        if better(score, progress.best):
            progress.best, progress.chosen = score, len(done)
            self.kept = {name: weight.clone() for name, weight in weights(self.trained).items()}
        epoch = progress.epoch + bool(progress.row)
        done.append({"epoch": epoch, "step": progress.step, "development": score})
        self.log(development=score)

    def tensors(self) -> dict[str, Tensor]:
        """Weights with moments, best weights, and losses since the last metrics line."""
        state = {"losses": torch.stack(self.losses) if self.losses else torch.empty(0)}
        state.update({f"best.{name}": weight for name, weight in self.kept.items()})
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
        """Resume at `progress` from the `state` that `tensors` returned."""
        for name, matrix in self.matrices.items():
            own = {key: state[f"{name}.{key}"] for key in matrix.state()}
            matrix.restore(own, progress.step)
        for name, weight in self.weights.items():
            assert self.optimizer is not None
            weight.data.copy_(state[name])
            self.optimizer.state[weight] = {
                key: state[f"adam.{key}.{name}"].to(weight.device)
                for key in ("step", "exp_avg", "exp_avg_sq")
            }
        self.progress, self.losses = progress, list(state["losses"].to(self.device))
        best = weights(self.trained) if progress.evaluations else ()
        self.kept = {name: state[f"best.{name}"] for name in best}

    def metrics(self) -> dict[str, Any]:
        """Counts, times and last loss of the training."""
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

    def evaluations(self) -> dict[str, Any]:
        """Score, epoch and step of the best evaluation, and all evaluations."""
        done = self.progress.evaluations
        best = done[self.progress.chosen]
        return {
            "development": best["development"],
            "best_epoch": best["epoch"],
            "best_step": best["step"],
            "epochs": done[-1]["epoch"],
            "evaluations": done,
        }

    def log(self, **values: float) -> None:
        """Write a line of metrics."""
        if self.folder is not None:
            at = self.progress
            position = {"step": at.step, "epoch": at.epoch, "pairs": at.seen}
            self.folder.log({**position, "pairs_per_second": at.rate, **values})
            at.lines += 1


def better(score: float, best: float | None) -> bool:
    """Whether a score is the best so far; NaN is never better than a number."""
    return best is None or score > best or (math.isnan(best) and not math.isnan(score))
