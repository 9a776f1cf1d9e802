"""TensorBoard's files: every figure once, also of a resumed training."""

import json
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from paraloom.models.tracking import Board
from tests.models.embeddings.training.test_checkpoint import folder, interrupted, run
from tests.run_helpers import Patch

__all__ = ["folder"]  # the fixture


def events(place: Path) -> dict[str, list[tuple[int, float]]]:
    """The figures in all event files of a folder: steps and values."""
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(place.iterdir()):
        read = EventAccumulator(str(path), size_guidance={"scalars": 0}).Reload()
        for name in read.Tags()["scalars"]:
            found.setdefault(name, []).extend((e.step, e.value) for e in read.Scalars(name))
    return found


def test_a_resumed_training_writes_every_line_once(folder: Path, monkeypatch: Patch) -> None:
    with interrupted(monkeypatch, 15):  # after lines that the last checkpoint does not know
        run(folder)
    run(folder)
    log = (folder / "model" / "metrics.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in log]
    found = events(folder / "logs" / "tensorboard" / "model")
    assert [at for at, _ in found["loss"]] == [line["step"] for line in lines]
    assert [loss for _, loss in found["loss"]] == pytest.approx([line["loss"] for line in lines])
    assert set(found) == set(lines[0]) - {"step"}


def test_files_of_an_earlier_training_go(tmp_path: Path) -> None:
    for loss in (2.0, 1.0):
        board = Board(tmp_path / "model")
        board.log({"step": 7, "loss": loss})
        board.close()
    assert events(tmp_path / "logs" / "tensorboard" / "model") == {"loss": [(7, 1.0)]}


def test_without_tensorboard_there_are_no_files(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    board = Board(tmp_path / "model")
    board.log({"step": 1, "loss": 1.0})
    board.close()
    assert list(tmp_path.iterdir()) == []
