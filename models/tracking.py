"""Figures of a training, for TensorBoard and for services that keep track of trainings."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file
from paraloom.models.structured import parse_json

Service = Literal["wandb", "mlflow"]


class Board:
    """TensorBoard's event files of one training in `<place>/logs/tensorboard/<name>`, beside the
    model's `folder`; earlier ones are removed. Without tensorboard there are none."""

    def __init__(self, folder: Path) -> None:
        self.place = folder.parent / "logs" / "tensorboard" / folder.name
        shutil.rmtree(self.place, ignore_errors=True)
        self.writer: Any = None

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Write figures at a step."""
        with suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self.writer = self.writer or SummaryWriter(str(self.place))
            for name, value in figures.items():
                self.writer.add_scalar(name, value, step)
            self.writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self.writer:
            self.writer.close()


class Tracker:
    """Hands on the metrics of a training, each line once, however often it is resumed.

    Event files are written anew from the metrics so far. `<work>/tracked.json` has the id of the
    service's run, and the number of lines that were handed to it.
    """

    def __init__(self, folder: Path, work: Path, service: Service | None) -> None:
        self.board = Board(folder)
        self.path, self.lines = work / "tracked.json", 0
        self.state: dict[str, Any] = {"id": None, "lines": 0}
        with suppress(OSError, ValueError):
            self.state |= parse_json(self.path.read_bytes(), dict[str, Any])
        self.run: _Run | None = None
        if service:
            open_run = _wandb if service == "wandb" else _mlflow
            self.run = open_run("/".join(folder.parts[-2:]), self.state["id"])

    def log(self, line: Mapping[str, Any]) -> None:
        """Hand on a line of the metrics, all of them in their order from the first on."""
        figures = {name: value for name, value in line.items() if name != "step"}
        self.board.log(line["step"], figures)
        self.lines += 1
        if self.run and self.lines > self.state["lines"]:
            self.state = {"id": self.run.id, "lines": self.lines}
            with atomic_file(self.path) as path:
                path.write_text(json.dumps(self.state))
            self.run.log(line["step"], figures)

    def close(self) -> None:
        """The training is finished."""
        self.board.close()
        if self.run:
            self.run.close()


def check_service(service: Service | None, key: str) -> None:
    """Check that the library of a service, the value of a configuration's key, is installed."""
    if service and find_spec(service) is None:
        raise UserError(f"{key}: {service} is not installed: pip install {service}")


class _Run(NamedTuple):
    """A service's run. Its project, address and key are set as the service's documents say."""

    id: str
    log: Callable[[int, Mapping[str, float]], object]
    close: Callable[[], object]


def _wandb(name: str, id: str | None) -> _Run:
    import wandb

    run = wandb.init(name=name, id=id, resume="allow")
    return _Run(run.id, lambda step, figures: run.log(dict(figures), step=step), run.finish)


def _mlflow(name: str, id: str | None) -> _Run:
    import mlflow

    run = mlflow.start_run(run_id=id, run_name=name)
    log = mlflow.log_metrics
    return _Run(
        run.info.run_id, lambda step, figures: log(dict(figures), step=step), mlflow.end_run
    )
