"""Progress of long work: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_LINE_EVERY = 15.0  # seconds between lines


@dataclass
class Meter:
    """Receives the progress of long work: `advance` adds to it, `set` replaces it."""

    description: str
    total: float | None
    unit: str
    done: float = 0.0
    note: str = ""
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _bar: Progress | None = None
    _task: TaskID | None = None
    _started: float = field(default_factory=time.monotonic)
    _printed: float = field(default_factory=time.monotonic)

    def advance(self, amount: float = 1, note: str | None = None) -> None:
        """Add `amount` units; `note` (a loss, a count) is printed beside the rate."""
        self.set(self.done + amount, note=note)

    def set(self, done: float, *, total: float | None = None, note: str | None = None) -> None:
        """Set the units that are done, and the total."""
        self.done = done
        self.total = self.total if total is None else total
        self.note = self.note if note is None else note
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                completed=done,
                total=self.total,
                count=self.count,
                rate=self.rate,
                note=self.note,
            )
        elif time.monotonic() - self._printed >= _LINE_EVERY:
            self._printed = time.monotonic()
            print(self.line(), file=self.stream, flush=True)

    @property
    def count(self) -> str:
        """As printed: units done, of the total."""
        return f"{self.done:,.0f}" + (f" of {self.total:,.0f}" if self.total else "")

    @property
    def rate(self) -> str:
        """As printed: units per second since the start."""
        seconds = max(time.monotonic() - self._started, 1e-9)
        return f"{self.done / seconds:,.0f} {self.unit}/s"

    def line(self) -> str:
        """The state as a line of a log."""
        seconds = time.monotonic() - self._started
        parts = [f"{self.description}: {self.count} {self.unit}"]
        if self.total and self.done:
            parts.append(f"{seconds * (self.total / self.done - 1):,.0f} s left")
        parts.append(self.rate)
        if self.note:
            parts.append(self.note)
        return ", ".join(parts)


@contextmanager
def meter(
    description: str,
    total: float | None = None,
    unit: str = "rows",
    *,
    stream: TextIO | None = None,
) -> Iterator[Meter]:
    """Show the progress of the block on standard error, or on `stream`.

    >>> with meter("score", total=2, unit="shards") as progress:
    ...     progress.advance()
    ...     progress.advance(note="loss 0.3")
    """
    stream = stream or sys.stderr
    console = Console(file=stream)
    if not console.is_terminal:
        yield Meter(description, total, unit, stream=stream)
        return
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[count]} " + unit),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(description, total=total, count="0", rate="", note="")
        yield Meter(description, total, unit, stream=stream, _bar=bar, _task=task)
