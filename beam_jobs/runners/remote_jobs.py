"""Jobs on a cluster or a service: names, messages to the user, and the effect of Ctrl-C."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import DamagedError, content_key
from paraloom.beam_jobs.storage import MissingError
from paraloom.models.errors import EmptyFileError, UserError
from paraloom.models.printing import say
from paraloom.models.progress import Meter

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

_ERRORS = {kind.__name__: kind for kind in (UserError, DamagedError, EmptyFileError, MissingError)}
_USER_ERROR = re.compile(rf"\b({'|'.join(_ERRORS)}): (.*?)(?: \[while running |\\n|\n|$)")


def user_error(text: str) -> UserError | None:
    r"""Find a worker's UserError in a runner's error message. Return None if there is no UserError.

    >>> user_error("Traceback …\nUserError: a: no such file [while running 'Score']")
    UserError('a: no such file')
    """
    found = _USER_ERROR.search(text)
    return _ERRORS[found[1]](found[2].strip()) if found else None


class RemoteJob(BaseModel):
    """A job on a service. `address` is the URL of the job's web page."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    id: str = ""
    address: str = ""


def name_job(options: PipelineOptions, name: str, output: str) -> None:
    """Name a job after its stage and folder, so that a later command can find the job."""
    from apache_beam.options.pipeline_options import GoogleCloudOptions

    cloud = options.view_as(GoogleCloudOptions)
    if cloud.job_name is None:
        path = output if storage.is_remote(output) else str(Path(output).resolve())
        words = "-".join(re.findall(r"[a-z0-9]+", name))
        cloud.job_name = f"paraloom-{words}-{content_key(path)[:8]}"


_listener: ContextVar[Callable[[RemoteJob], None]] = ContextVar("listener")


@contextmanager
def listening(listener: Callable[[RemoteJob], None]) -> Iterator[None]:
    """Call `listener` for each job that the block submits or finds running."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass(frozen=True, slots=True)
class User:
    """The user at the terminal while a remote job runs."""

    options: PipelineOptions
    progress: Meter | None = None
    terminal: IO[str] | None = None

    def tell(self, job: RemoteJob, what: str) -> None:
        """Report that a job was submitted or found."""
        if self.progress:
            self.progress.say(f"{job.name}: {what}, {job.address}")
        if listener := _listener.get(None):
            listener(job)

    def cancels(self) -> bool:
        """Whether Ctrl-C also cancels the job, by `--on_interrupt` or the user's answer.

        Without this option and without a terminal, the job is cancelled, because it could run on
        unnoticed. A second Ctrl-C instead of an answer leaves the job running.
        """
        choice = self.options.get_all_options().get("on_interrupt")
        streams = self.terminal, sys.stdin
        asks = all(stream is not None and stream.isatty() for stream in streams)
        if choice is None and self.progress and asks:
            self.progress.stop()
            say("Cancel the job, too? Otherwise it keeps running. [cancel/LEAVE]", self.terminal)
            try:
                choice = "cancel" if sys.stdin.readline().strip() == "cancel" else "leave"
            except KeyboardInterrupt:
                choice = "leave"
        return bool(choice != "leave")
