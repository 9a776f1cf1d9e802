"""TensorBoard's files and what services get: every figure once, also of a resumed training."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from paraloom.models.errors import UserError
from paraloom.models.tracking import Board, Tracker, check_service
from tests.models.embeddings.training.test_checkpoint import OPTIONS, folder, interrupted, run
from tests.run_helpers import Patch

__all__ = ["folder"]  # the fixture

Handed = list[tuple[str, int, dict[str, float]]]


def events(place: Path) -> dict[str, list[tuple[int, float]]]:
    """The figures in all event files of a folder: steps and values."""
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(place.iterdir()):
        read = EventAccumulator(str(path), size_guidance={"scalars": 0}).Reload()
        for name in read.Tags()["scalars"]:
            found.setdefault(name, []).extend((e.step, e.value) for e in read.Scalars(name))
    return found


@pytest.fixture(params=["wandb", "mlflow"])
def service(request: pytest.FixtureRequest, monkeypatch: Patch) -> Iterator[Any]:
    """A service in place of a real one: its name, what it was handed, the runs that were closed."""
    handed: Handed = []
    closed: list[str] = []
    module = ModuleType(request.param)
    if request.param == "wandb":

        def init(*, name: str, id: str | None, resume: str) -> Any:
            assert resume == "allow"
            own = id or f"new {name}"
            run = SimpleNamespace(id=own, finish=lambda: closed.append(own))
            run.log = lambda figures, step: handed.append((own, step, figures))
            return run

        vars(module).update(init=init)
    else:
        active: list[str] = []

        def start_run(*, run_id: str | None, run_name: str) -> Any:
            active.append(run_id or f"new {run_name}")
            return SimpleNamespace(info=SimpleNamespace(run_id=active[-1]))

        def log_metrics(figures: dict[str, float], step: int) -> None:
            handed.append((active[-1], step, figures))

        changes = {"start_run": start_run, "log_metrics": log_metrics}
        vars(module).update(changes, end_run=lambda: closed.append(active.pop()))
    monkeypatch.setitem(sys.modules, request.param, module)
    yield request.param, handed, closed


def test_a_resumed_training_hands_on_every_line_once(
    folder: Path, service: Any, monkeypatch: Patch
) -> None:
    name, handed, closed = service
    options = OPTIONS.replace(track=name)
    with interrupted(monkeypatch, 15):  # after lines that the last checkpoint does not know
        run(folder, options)
    before, (state,) = len(handed), folder.glob("model.training/step-*/state.json")
    assert before > json.loads(state.read_text())["lines"] > 0 and not closed
    run(folder, options)
    log = (folder / "model" / "metrics.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in log]
    id = f"new {folder.name}/model"
    assert [(own, at) for own, at, _ in handed] == [(id, line["step"]) for line in lines]
    assert [figures["loss"] for *_, figures in handed] == [line["loss"] for line in lines]
    assert len(handed) > before and closed == [id]
    found = events(folder / "logs" / "tensorboard" / "model")
    assert [at for at, _ in found["loss"]] == [line["step"] for line in lines]
    assert [loss for _, loss in found["loss"]] == pytest.approx([line["loss"] for line in lines])
    assert set(found) == set(lines[0]) - {"step"}


def test_a_new_training_is_a_new_run(tmp_path: Path, service: Any) -> None:
    name, handed, _ = service
    for work in ("one", "other"):
        (tmp_path / work).mkdir()
        tracker = Tracker(tmp_path / "model", tmp_path / work, name)
        tracker.log({"step": 7, "loss": 1.0})
        tracker.close()
    assert [at for _, at, _ in handed] == [7, 7]
    place = tmp_path / "logs" / "tensorboard" / "model"
    assert events(place) == {"loss": [(7, 1.0)]}  # earlier files are gone


def test_without_tensorboard_there_are_no_files(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    board = Board(tmp_path / "model")
    board.log(1, {"loss": 1.0})
    board.close()
    assert list(tmp_path.iterdir()) == []


def test_a_service_that_is_not_installed(monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.models.tracking.find_spec", lambda name: None)
    check_service(None, "embeddings.track")
    with pytest.raises(UserError, match=r"^nmt\.training\.track: mlflow is not installed: pip "):
        check_service("mlflow", "nmt.training.track")
