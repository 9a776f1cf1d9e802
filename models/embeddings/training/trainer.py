"""The training loop that all tasks share."""

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

LOG_EVERY = 100  # approximate number of steps between two losses in metrics.jsonl
READ_EVERY = 20  # steps between copies of losses from a GPU; must divide `LOG_EVERY`


class Pool(Protocol[Produced]):
    """Examples that are shuffled together."""

    identical: int = 0  # examples left out because both sides are equal
    empty: int = 0  # examples left out because a side has no token

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.int64]) -> Produced:
        """Return the examples with the indices `rows`, in this order."""


class Source(Protocol[Produced]):
    """Examples to train on. An epoch is a sequence of pools, each of which fits into memory."""

    rows: int  # examples in an epoch, including the examples left out
    name: str  # name of the source in messages

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Produced]]:
        """Yield the pools of an epoch from index `first` on. Repeated calls yield equal pools."""


class Memory(Generic[Batch]):
    """A source with a single pool in memory."""

    def __init__(self, pool: Pool[Batch], name: str) -> None:
        self.pool, self.name = pool, name
        self.rows = len(pool) + pool.identical + pool.empty

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Batch]]:
        """Yield the only pool if `first` is 0."""
        if first == 0:
            yield self.pool


@dataclass
class Progress:
    """Position and results of a training, which a checkpoint contains beside the tensors."""

    step: int = 0
    epoch: int = 0  # number of finished epochs
    pool: int = 0  # index of the pool in the epoch
    row: int = 0  # examples of the pool that are done
    pairs: int = 0  # pairs that an epoch trains on
    identical: int = 0  # left-out pairs, as in `Pool`
    empty: int = 0
    seen: int = 0  # pairs trained on, in all epochs
    best: float | None = None  # best score on development data
    loss: float = math.nan  # mean of `Trainer.losses` when they were last read
    seconds: float = 0.0
    lines: int = 0  # lines written to metrics.jsonl
    evaluations: list[dict[str, float]] = field(default_factory=list)
    """Evaluations: `epoch` (from 1), `step`, and the score on development data, `development`."""
    chosen: int = -1  # index of the best evaluation

    @property
    def rate(self) -> float:
        """Pairs per second."""
        return round(self.seen / max(self.seconds, 1e-9), 1)


class Trainer(Generic[Batch]):
    """Trains an encoder on a source of examples. Subclasses define `train_on`.

    Args:
        folder: where checkpoints and metrics are written. By default, none are written.
        head: a module that is trained together with the encoder.
        evaluate: returns the score of the present weights on development data. It is called after
            each epoch and every `options.evaluate_every` steps.
    """

    adam = True  # if False, word vectors are trained by plain gradient steps
    trains_words = True  # if False, word vectors remain unchanged

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
        self.losses: list[Tensor] = []  # losses that metrics.jsonl does not cover yet
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
        """Return Adam with the penalty λ_c ‖W‖² for all weights except word vectors."""
        rate, decay = self.options.learning_rate, 2 * self.options.lambda_c
        return torch.optim.Adam(weights, rate, weight_decay=decay, fused=True)

    def fit(self) -> Progress:
        """Train the encoder. Load the best weights at the end if there is development data."""
        options, progress = self.options, self.progress
        total = self.source.rows * options.epochs
        started = time.monotonic() - progress.seconds
        self.trained.train()
        gpus = [self.device] if self.device.type == "cuda" else []
        with meter("train", total, "pairs") as bar, torch.random.fork_rng(gpus):
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
                        if progress.epoch:  # the first epoch has counted the pairs to train on
                            total = progress.pairs * options.epochs
                        bar.set(progress.seen, total=total, note=f"loss {progress.loss:.4f}")
                    progress.pool, progress.row = progress.pool + 1, 0
                    if self.finished:
                        break
                progress.epoch, progress.pool = progress.epoch + 1, 0
                if progress.step == 0:
                    raise UserError(
                        f"{self.source.name}: nothing to train on: {progress.identical:,} pairs "
                        f"have equal sides, {progress.empty:,} have an empty side, "
                        f"{progress.pairs:,} have no negative"
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
        """Whether all epochs are done, or the last `patience` evaluations gave no better score."""
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
        """Train on a batch, with one or more optimiser steps."""
        raise NotImplementedError

    def seed_noise(self) -> None:
        """Seed the dropout of the next step, so that checkpoints need no random state."""
        if self.options.dropout or self.options.word_dropout:
            torch.manual_seed(self.noise_seed)

    @property
    def noise_seed(self) -> int:
        """Seed of the next step's noise. Torch accepts seeds of 64 bits."""
        return ((self.seed << 40) + self.progress.step) % (1 << 64)

    def encode(self, sentences: Sentences) -> Tensor:
        """Return the vectors of n sentences, [n, dim]."""
        vectors: Tensor = self.encoder(sentences)
        return vectors

    def optimizer_step(self, loss: Tensor) -> None:
        """Make one optimiser step with the gradient of a loss."""
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
        """Add regularisation gradients before clipping, if a subclass has any."""

    def report(self, before: int) -> None:
        """Evaluate, check losses, log and save, each if due. `before` is the last report's step."""
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
        """Wait for the GPU and update the mean loss. Raise a UserError if a loss is not finite."""
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
        """Evaluate the weights, at most once per step. Store the weights with the best score."""
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
        """Return a checkpoint's tensors: weights, optimiser state, best weights and losses."""
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
        """Return the counts, the duration and the last mean loss of the training."""
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
        """Return the score, epoch and step of the best evaluation, and all evaluations."""
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
        """Append `values`, and the position in the training, to metrics.jsonl."""
        if self.folder is not None:
            at = self.progress
            position = {"step": at.step, "epoch": at.epoch, "pairs": at.seen}
            self.folder.log({**position, "pairs_per_second": at.rate, **values})
            at.lines += 1


def better(score: float, best: float | None) -> bool:
    """Return whether a score is the best so far. NaN is never better than a number."""
    return best is None or score > best or (math.isnan(best) and not math.isnan(score))
