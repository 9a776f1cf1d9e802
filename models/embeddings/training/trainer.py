"""The training loop (W&G 2017, Eq. 2; ParaNMT 4.2), from top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from models.embeddings.encoders import tables
from models.embeddings.options import EmbeddingOptions
from models.embeddings.ragged_columns import Sentences, join_all, take_all
from models.embeddings.training.checkpoint import TrainingFolder
from models.embeddings.training.data import Pairs, Source
from models.embeddings.training.loss import margin_loss
from models.embeddings.training.negatives import hardest_negatives
from models.errors import UserError
from models.progress import meter

_ENCODED = 2048  # sentences encoded at once when negatives are chosen
_LOGGED = 100  # steps between two lines of the metrics, at least


@dataclass
class Progress:
    """Where training stands; with the weights, the moments and the seed it says how to go on."""

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


@dataclass
class Trainer:
    """Training of one encoder on one source of pairs.

    All that is random in a step (noise, order, scrambling) depends on the seed and on where the
    step stands alone, so that no random state has to be kept.

    Args:
        encoder: on the device where it is to be trained.
        source: the pairs.
        options: how to train.
        seed: of the order and of all noise.
        folder: where to keep checkpoints and metrics; None keeps none.
        evaluate: gives the score on development data and keeps the model when told that it is the
            best so far.
    """

    plain_steps: ClassVar[bool] = False
    """Plain gradient steps instead of Adam's."""

    encoder: nn.Module
    source: Source
    options: EmbeddingOptions
    seed: int
    folder: TrainingFolder | None = None
    evaluate: Callable[[float | None], float] | None = None
    at: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        options = self.options
        self.tables = tables(self.encoder)
        adam = not self.plain_steps
        for table in self.tables.values():
            table.prepare(options.learning_rate, towards=options.l2_words, adam=adam)
        self.weights = dict(self.encoder.named_parameters())
        self.device = next(iter(self.tables.values())).weight.device
        self.optimiser: torch.optim.Optimizer | None = None
        if self.weights:  # torch's weight_decay is L2 regularisation: λ w is added to the gradient
            self.optimiser = (torch.optim.Adam if adam else torch.optim.SGD)(
                self.weights.values(), options.learning_rate, weight_decay=options.l2, fused=True
            )
        self.losses: list[Tensor] = []  # since the last line of the metrics

    def fit(self) -> Progress:
        """Train to the end."""
        options, at = self.options, self.at
        total = self.source.rows * options.epochs
        if options.steps is not None:
            total = options.steps * options.batch_size
        started = time.monotonic() - at.seconds
        self.encoder.train()
        with meter("train", total, "pairs") as progress, torch.random.fork_rng():
            while not self.finished:
                for pool in self.source.epoch(at.epoch, at.pool):
                    if at.epoch == at.row == 0:
                        at.pairs += len(pool)
                        at.identical += pool.identical
                        at.empty += pool.empty
                    random = np.random.default_rng([self.seed, at.epoch, at.pool])
                    order = random.permutation(len(pool))
                    while at.row < len(pool) and not self.finished:
                        rows = order[at.row : at.row + self.mega_batch * options.batch_size]
                        before = at.step
                        self.train_mega_batch(pool.take(rows))
                        at.row += len(rows)
                        at.seen += len(rows)
                        at.seconds = time.monotonic() - started
                        self.report(before)
                        if at.epoch and options.steps is None:  # what is left out is known by now
                            total = at.pairs * options.epochs
                        progress.set(at.seen, total=total, note=f"loss {at.loss:.4f}")
                    at.pool, at.row = at.pool + 1, 0
                    if self.finished:
                        break
                at.epoch, at.pool = at.epoch + 1, 0
                if at.step == 0:
                    raise UserError(
                        f"{self.source.name}: nothing to train on: {at.identical:,} pairs are "
                        f"identical, {at.empty:,} have an empty side, {at.pairs:,} no negative"
                    )
                if options.evaluate_every is None or self.finished:
                    self.score()
        return at

    @property
    def finished(self) -> bool:
        """Whether all steps or epochs are done."""
        if self.options.steps is not None:
            return self.at.step >= self.options.steps
        return self.at.epoch >= self.options.epochs

    @property
    def mega_batch(self) -> int:
        """M, as large as it is by now."""
        M, growth = self.options.mega_batch, self.options.mega_batch_growth
        if growth is not None:
            M = min(M, 1 + self.at.step // growth)
        if self.options.steps is not None:
            M = min(M, self.options.steps - self.at.step)
        return M

    def train_mega_batch(self, pairs: Pairs) -> None:
        """Choose everyone's negatives with the weights as they are, then step by mini-batch."""
        options, at = self.options, self.at
        if options.scramble:
            random = np.random.default_rng([self.seed, at.epoch, at.pool, at.row])
            pairs = pairs.scrambled(options.scramble, random, tags=options.tags)
        n = len(pairs)
        stack = join_all([pairs.left, pairs.right])
        negatives = self.negatives(stack, pairs.keys)
        for start in range(0, n, options.batch_size):
            rows = np.arange(start, min(start + options.batch_size, n))
            rows = rows[(negatives[:, rows] >= 0).all(axis=0)]
            if len(rows):
                quads = np.concatenate([rows, rows + n, *negatives[:, rows]])
                self.step(take_all(stack, quads))

    @torch.no_grad()
    def negatives(self, stack: Sentences, keys: np.ndarray) -> np.ndarray:
        """The rows of `stack` (n left and n right sentences) that are their negatives, [2, n]."""
        n = keys.shape[1]
        self.encoder.eval()
        starts = range(0, 2 * n, _ENCODED)
        chunks = (np.arange(start, min(start + _ENCODED, 2 * n)) for start in starts)
        vectors = torch.cat([self.encode(take_all(stack, rows)) for rows in chunks])
        self.encoder.train()
        sides = vectors[:n], vectors[n:], keys[0], keys[1]
        found = hardest_negatives(*sides, self.options.negatives)
        return torch.stack(found).numpy()

    def disturb(self) -> None:
        """Seed the noise of the step to come."""
        if self.options.dropout or self.options.word_dropout:
            torch.manual_seed((self.seed << 40) + self.at.step)

    def encode(self, sentences: Sentences) -> Tensor:
        """Vectors of a batch, float32, in the precision of the options."""
        with self.precision():
            return self.encoder(sentences).float()

    def precision(self) -> AbstractContextManager[Any]:
        """That of matrix products in the block."""
        half = self.options.precision == "bfloat16" and self.device.type == "cuda"
        return torch.autocast("cuda", torch.bfloat16) if half else nullcontext()

    def step(self, quads: Sentences) -> None:
        """One gradient step on lefts, rights, and the negatives of either, a quarter each."""
        self.disturb()
        self.descend(margin_loss(self.encode(quads), self.options.margin))

    def descend(self, loss: Tensor) -> None:
        """One step down the gradient of a loss."""
        loss.backward()
        if self.options.clip is not None:
            read = [table.read for table in self.tables.values()]
            leaves = [*self.weights.values(), *(rows for rows in read if rows is not None)]
            torch.nn.utils.clip_grad_norm_(leaves, self.options.clip)
        if self.optimiser is not None:
            self.optimiser.step()
            self.optimiser.zero_grad()
        for table in self.tables.values():
            table.step()
        self.at.step += 1
        self.losses.append(loss.detach())

    def report(self, before: int) -> None:
        """After a mega-batch: stop if a loss is no number, log, evaluate, keep a checkpoint."""
        options, at = self.options, self.at
        if not self.losses:
            return
        losses = torch.stack(self.losses).tolist()
        for step, loss in enumerate(losses, at.step - len(losses) + 1):
            if not math.isfinite(loss):
                raise UserError(
                    f"the loss is {loss} at step {step}: lower learning_rate "
                    f"({options.learning_rate}) or look at the vectors it starts from"
                )
        at.loss = float(np.mean(losses))

        def due(every: int | None) -> bool:
            return every is not None and before // every < at.step // every

        if due(_LOGGED):
            self.losses = []
            self.log(loss=at.loss)
        if due(options.evaluate_every):
            self.score()
        if self.folder is not None and due(options.checkpoint_every):
            self.folder.save(at.step, asdict(at), self.tensors())

    def score(self) -> None:
        """Evaluate on development data."""
        if self.evaluate is not None:
            score = self.evaluate(self.at.best)
            self.log(development=score)
            if better(score, self.at.best):
                self.at.best = score

    def tensors(self) -> dict[str, Tensor]:
        """The weights, the moments of all of them, and the losses since the last line."""
        state = {"losses": torch.stack(self.losses) if self.losses else torch.empty(0)}
        for name, table in self.tables.items():
            state.update({f"{name}.{key}": value for key, value in table.state().items()})
        for name, weight in self.weights.items():
            state[name] = weight.detach()
            assert self.optimiser is not None
            for key, value in self.optimiser.state[weight].items():
                if value is not None:
                    state[f"adam.{key}.{name}"] = value
        return state

    def restore(self, at: Progress, state: dict[str, Tensor]) -> None:
        """Go on from what `tensors` gave when training stood there.

        Raises:
            KeyError, ValueError: the tensors are those of another encoder.
        """
        for name, table in self.tables.items():
            own = {key: state[f"{name}.{key}"] for key in table.state()}
            if own["weight"].shape != table.weight.shape:
                was, now = (tuple(weight.shape) for weight in (own["weight"], table.weight))
                raise ValueError(f"a vocabulary and vectors of shape {was}, not {now}")
            table.restore(own, at.step)
        for name, weight in self.weights.items():
            assert self.optimiser is not None
            weight.data.copy_(state[name])
            if not self.plain_steps:
                self.optimiser.state[weight] = {
                    key: state[f"adam.{key}.{name}"].to(weight.device)
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
        self.at, self.losses = at, list(state["losses"].to(self.device))

    def settle(self) -> None:
        """End training: only the encoder with its present weights is left."""
        for table in self.tables.values():
            table.settle()
        self.encoder.eval()

    def metrics(self) -> dict[str, Any]:
        """What the run was like."""
        at = self.at
        return {
            "pairs": at.pairs,
            "identical": at.identical,
            "empty": at.empty,
            "steps": at.step,
            "seconds": round(at.seconds, 2),
            "pairs_per_second": round(at.seen / max(at.seconds, 1e-9), 1),
            "loss": at.loss,
        }

    def log(self, **values: float) -> None:
        """Write a line of metrics."""
        if self.folder is not None:
            at = self.at
            rate = round(at.seen / max(at.seconds, 1e-9), 1)
            head = {"step": at.step, "epoch": at.epoch, "pairs": at.seen, "pairs_per_second": rate}
            self.folder.log({**head, **values})
            at.lines += 1


def better(score: float, best: float | None) -> bool:
    """Whether a score is the best so far; one that is no number never beats one that is."""
    return best is None or score > best or (math.isnan(best) and not math.isnan(score))
