"""Jobs that a cluster or a service runs: what the user is told of them, and what Ctrl-C does."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import IO, Any

from apache_beam.options.pipeline_options import PipelineOptions
from pydantic import BaseModel, ConfigDict

from models.printing import say
from models.progress import Meter


class RemoteJob(BaseModel):
    """A job on a service; `address` is that of its page."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    id: str = ""
    address: str = ""


_listener: ContextVar[Callable[[RemoteJob], None]] = ContextVar("listener")


@contextmanager
def listening(listener: Callable[[RemoteJob], None]) -> Iterator[None]:
    """Tell the listener of every job that is submitted, or found at work, in the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class InterruptOptions(PipelineOptions):
    """What Ctrl-C does to a job elsewhere."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        parser.add_argument("--on_interrupt", choices=("leave", "cancel"))


@dataclass(frozen=True, slots=True)
class User:
    """The user at the terminal, while a job is at work elsewhere."""

    options: PipelineOptions
    progress: Meter | None = None
    terminal: IO[str] | None = None

    def say(self, line: str) -> None:
        """Print a line, if the user is there."""
        if self.progress:
            self.progress.say(line)

    def tell(self, job: RemoteJob, what: str) -> None:
        """Tell that a job was submitted or found."""
        self.say(f"{job.name}: {what}, {job.address}")
        if listener := _listener.get(None):
            listener(job)

    def cancels(self) -> bool:
        """Whether Ctrl-C ends the job too: `--on_interrupt`, or the answer at a terminal.

        Without either it does: nobody may be there to end it later. A second Ctrl-C leaves it.
        """
        choice = self.options.view_as(InterruptOptions).on_interrupt
        asks = self.terminal is not None and self.terminal.isatty() and sys.stdin.isatty()
        if choice is None and self.progress and asks:
            self.progress.stop()
            say("Cancel the job, too? Otherwise it goes on. [cancel/LEAVE]", self.terminal)
            try:
                choice = "cancel" if sys.stdin.readline().strip() == "cancel" else "leave"
            except KeyboardInterrupt:
                choice = "leave"
        return choice != "leave"
