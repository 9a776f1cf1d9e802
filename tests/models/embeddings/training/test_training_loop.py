"""The loop that all trainings share: its end, order, lines, checkpoints and bar."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from paraloom.models.embeddings.training.data import Pairs
from paraloom.models.embeddings.training.trainer import Memory, Pool, Progress
from paraloom.models.errors import UserError
from tests.models.embeddings.training.test_trainer import make_trainer, pool_of
from tests.run_helpers import Patch


class Recorder:
    """In place of a `TrainingFolder`."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.saved: list[int] = []

    def log(self, line: dict[str, Any]) -> None:
        self.lines.append(line)

    def save(self, step: int, state: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        assert state["step"] == step and state["lines"] == len(self.lines)
        self.saved.append(step)


def test_lines_and_checkpoints_are_due_after_so_many_steps(monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.models.embeddings.training.trainer.LOG_EVERY", 5)
    trainer = make_trainer(epochs=2, checkpoint_every=4)
    folder: Any = Recorder()
    trainer.folder = folder
    steps: list[float] = []
    take = trainer.optimizer_step

    def record(loss: torch.Tensor) -> None:
        steps.append(loss.item())
        take(loss)

    monkeypatch.setattr(trainer, "optimizer_step", record)
    trainer.fit()
    # Due after the mega-batch, of three steps, in which a multiple of five, or four, is passed.
    position = [(line["step"], line["epoch"], line["pairs"]) for line in folder.lines]
    assert position == [(6, 0, 60), (12, 1, 120), (15, 1, 150)]
    assert folder.saved == [6, 9, 12, 18]
    for start, line in zip((0, 6, 12), folder.lines, strict=True):
        assert line["loss"] == pytest.approx(np.mean(steps[start : line["step"]]), rel=1e-5)
    assert trainer.progress.loss == pytest.approx(np.mean(steps[15:]), rel=1e-5)


def test_the_step_without_a_finite_loss_is_named() -> None:
    trainer = make_trainer()
    trainer.progress.step = 9
    trainer.losses = [torch.tensor(value) for value in (0.5, float("inf"), 0.5, float("nan"))]
    with pytest.raises(UserError, match=r"^the loss is inf at step 7: .* learning_rate \(0\.01\)"):
        trainer.report(8)


def test_the_bar_shows_the_pairs_that_are_left_to_train_on(monkeypatch: Patch) -> None:
    """Of the first epoch, left-out pairs are not known before its end."""
    trainer, totals = make_trainer(mega_batch=2, epochs=2), [(20 + 7) * 2, 40]
    pool = replace(pool_of(trainer).take(np.arange(20)), identical=4, empty=3)
    trainer.source = Memory(pool, "memory")
    shown: list[tuple[int, int]] = []

    class Bar:
        def set(self, done: int, *, total: int, note: str) -> None:
            assert note == f"loss {trainer.progress.loss:.4f}"
            shown.append((done, total))

    def meter(name: str, total: int, unit: str) -> AbstractContextManager[Bar]:
        assert (name, total, unit) == ("train", totals[0], "pairs")
        return nullcontext(Bar())

    monkeypatch.setattr("paraloom.models.embeddings.training.trainer.meter", meter)
    trainer.fit()
    assert shown == [(20 * (i + 1), total) for i, total in enumerate(totals)]


class Twice(Memory[Pairs]):
    """Epochs of two pools with the same pairs."""

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pool[Pairs]]:
        yield from [self.pool, self.pool][first:]


def test_every_pool_of_every_epoch_has_an_order_of_its_own(monkeypatch: Patch) -> None:
    pairs = pool_of(make_trainer())
    number = {key: i for i, key in enumerate(zip(*pairs.keys.tolist(), strict=True))}
    orders: list[tuple[int, ...]] = []
    for seed in (1, 1, 2):
        trainer = make_trainer(seed, epochs=2, mega_batch=9)
        trainer.source = Twice(pairs, "twice")
        monkeypatch.setattr(
            trainer,
            "train_on",
            lambda batch: orders.append(
                tuple(number[key] for key in zip(*batch.keys.tolist(), strict=True))
            ),
        )
        monkeypatch.setattr(trainer, "progress", Progress(step=1))  # no step is made
        trainer.fit()
    assert all(sorted(order) == list(range(90)) for order in orders)
    assert orders[:4] == orders[4:8] and len(set(orders)) == 8
