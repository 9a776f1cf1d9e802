"""Ctrl-C while a job is at work elsewhere."""

import io

import pytest

from paraloom.beam_jobs.runners.launch import parse_options
from paraloom.beam_jobs.runners.remote_jobs import User
from paraloom.models.progress import meter
from tests.run_helpers import Patch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Impatient(Terminal):
    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("option", "keyboard", "cancels"),
    [
        (["--on_interrupt=leave"], None, False),
        (["--on_interrupt=cancel"], None, True),
        ([], None, True),  # no terminal
        ([], Terminal("\n"), False),
        ([], Terminal("cancel\n"), True),
        ([], Impatient(), False),
        (["--on_interrupt=cancel"], Terminal("\n"), True),
    ],
)
def test_it_leaves_the_job_or_cancels_it(
    option: list[str], keyboard: io.StringIO | None, cancels: bool, monkeypatch: Patch
) -> None:
    terminal = Terminal() if keyboard else io.StringIO()
    monkeypatch.setattr("sys.stdin", keyboard or io.StringIO())
    with meter("score", stream=terminal) as progress:
        assert User(parse_options(option), progress, terminal).cancels() == cancels
    asked = "Cancel the job, too? Otherwise it goes on. [cancel/LEAVE]" in terminal.getvalue()
    assert asked == (keyboard is not None and not option)
