"""Progress of long work. A terminal shows a bar. Other outputs get a line every 15 seconds."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from paraloom.models.printing import on_one_line, say

_LINE_EVERY = 15.0  # seconds between lines
SHOW_CURSOR = "\x1b[?25h\n"
_WHOLE_TIME = 1e9  # seconds; averages the rate since the start, not over the last 30 s

listeners: list[Callable[[int], None]] = []
"""Functions that receive the number of sentences in a batch. Only the last function is called."""
_TELLING = threading.Lock()


def hear_batches(model: Any) -> None:
    """Call the last of `listeners` for every batch that a sentence-transformers model computes."""

    def tell(_: Any, inputs: tuple[Any, ...], __: Any) -> None:
        with _TELLING:  # several threads may compute batches
            for listener in listeners[-1:]:
                listener(sum(len(of.get("input_ids", ())) for of in inputs if hasattr(of, "get")))

    if hasattr(model, "register_forward_hook"):
        model.register_forward_hook(tell)


class Meter:
    """The progress of some work. Use `meter` to create this object."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task
        self._printed = time.monotonic()

    def set(self, done: float, *, total: float | None = None, **fields: Any) -> None:
        """Set the number of finished items, the number of all items, and a `note` to show."""
        self._bar.update(self._task, completed=done, total=total, **fields)
        if self._bar.disable and time.monotonic() - self._printed >= _LINE_EVERY:
            self._printed = time.monotonic()
            task = self._bar.tasks[0]
            say(f"{task.description}: {_state(task)}", self._bar.console.file)

    def say(self, line: str) -> None:
        """Print a message beside the progress."""
        self._bar.console.print(on_one_line(line), markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Stop updating the bar."""
        self._bar.stop()


class _StateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(_state(task))


def _state(task: Task) -> str:
    unit = task.fields["unit"]
    of_total = f" of {task.total:,.0f}" if task.total else ""
    parts = [f"{task.completed:,.0f}{of_total} {unit}"]
    if task.time_remaining:
        parts.append(f"{task.time_remaining:,.0f} s left")
    if speed := task.finished_speed or task.speed:
        parts.append(f"{speed:,.0f} {unit}/s")
    return ", ".join(filter(None, [*parts, task.fields["note"]]))


@contextmanager
def meter(
    description: str,
    total: float | None = None,
    unit: str = "rows",
    *,
    stream: TextIO | None = None,
) -> Iterator[Meter]:
    """Show the block's progress on standard error, or on `stream`.

    >>> with meter("score", total=2, unit="shards") as progress:
    ...     progress.set(1, note="loss 0.3")
    """
    console = Console(file=stream or sys.stderr)
    bar = Progress(
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=30),
        _StateColumn(Column(no_wrap=True)),
        console=console,
        redirect_stderr=stream is None,
        disable=not console.is_terminal,
        speed_estimate_period=_WHOLE_TIME,
    )
    with bar:
        yield Meter(bar, bar.add_task(description, total=total, unit=unit, note=""))
