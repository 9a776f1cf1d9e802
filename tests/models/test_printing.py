"""What is printed moves no cursor and forges no line."""

import ast
import os
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import pytest
from rich.table import Table

from paraloom.models.printing import Lossy, on_one_line, say, show, visible
from paraloom.models.progress import meter
from paraloom.pipeline.commands.console import console
from tests.run_helpers import Capsys
from tests.sample import ROOT

HOSTILE = "\x1b[2J\x1b]8;;http://evil\x1b\\here\x07\r\x9b31m\u202ereversed\u2066\x7f"
HARMLESS = r"\x1b[2J\x1b]8;;http://evil\x1b\here\x07\x0d\x9b31m\u202ereversed\u2066\x7f"


def test_control_characters_are_shown() -> None:
    assert visible(HOSTILE) == HARMLESS
    assert visible(text := "žluťoučký\tkůň\n日本 — שלום") == text
    assert on_one_line("a\nb\x1bc") == r"a\nb\x1bc"
    assert visible("\udcff") == r"\udcff"


def test_messages_results_and_tables(capsys: Capsys) -> None:
    say(f"paraloom: {HOSTILE}\nforged: line")
    show(HOSTILE)
    out, err = capsys.readouterr()
    assert err == f"paraloom: {HARMLESS}\\nforged: line\n"
    assert out == f"{HARMLESS}\n"
    table = Table("score", title=HOSTILE)
    table.add_row(HOSTILE)
    console().print(table, HOSTILE)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x9b" not in out and "\u202e" not in out
    assert r"\x1b[2J" in out


def full_disk() -> TextIO:
    return open("/dev/full", "w", buffering=1)  # noqa: PTH123


def closed_pipe() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", buffering=1)


@pytest.mark.parametrize("broken", [full_disk, closed_pipe])
def test_messages_that_nobody_can_read_stop_nothing(broken: Callable[[], TextIO]) -> None:
    file = broken()
    stream: Any = Lossy(file)
    assert stream.fileno() == file.fileno()
    for _ in range(2):
        print("lost", file=stream)
        say("lost", stream)
    stream.flush()
    with meter("work", 2, stream=stream) as progress:
        progress._printed = -99  # the next line is due
        progress.set(1)
    stream.close()
    assert file.closed


def test_a_bar_on_a_stream_of_its_own_leaves_standard_error_alone() -> None:
    """Errors of Beam's threads go to the log of a stage, not through the bar."""

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    before, terminal = sys.stderr, Terminal()
    with meter("score", 2, stream=terminal):
        assert sys.stderr is before
    assert "0 of 2 rows" in terminal.getvalue()


def test_all_printing_goes_through_here() -> None:
    elsewhere = {
        "models/printing.py",
        "models/nmt/fairseq_run.py",  # lines, to its parent
        # Their own errors, to the log of a stage.
        "models/nmt/gpu_processes.py",
        "beam_jobs/runners/local/fork_server.py",
    }
    for package in ("models", "beam_jobs", "pipeline", "benchmarks/papers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name, text = path.relative_to(ROOT).as_posix(), path.read_text()
            if "print(" not in text and "Console(" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                called = node.func if isinstance(node, ast.Call) else None
                if isinstance(called, ast.Name) and called.id == "print":
                    assert name in elsewhere, f"{name}:{called.lineno}: use say or show"
                if isinstance(called, ast.Name) and called.id == "Console":
                    said = f"{name}: use paraloom.pipeline.commands.console"
                    assert name == "models/progress.py", said
    assert all(Path(ROOT, name).exists() for name in elsewhere)
