"""Scores that a program of the user's prints, in an environment of its own: one run for each shard.

The program gets the pairs on its standard input, a line each: source, reference and translation,
separated by tabs, in UTF-8. It prints a number a line.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from threading import Thread
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.errors import UserError
from paraloom.models.printing import say
from paraloom.models.scorers.base import Outcome, Scorer
from paraloom.models.scorers.elsewhere import supervise
from paraloom.models.scorers.elsewhere.numbers import numbers
from paraloom.models.text.controls import spaced
from paraloom.models.text.tokens import PairText

TIMEOUT = 3600.0
"""Seconds that a program has for a shard, unless the configuration says otherwise."""

_SUPERVISE = (sys.executable, "-I", "-S", supervise.__file__)
_TRIES = 3
_LONGEST = 100  # characters of a number
_SHOWN = 300  # characters of a command, and of the last line of its stderr
_OPTION = re.compile(r"(--[a-z][a-z_-]*|-[A-Za-z])(=|$)")
_VALUE = re.compile(r"(\$\{\w+\})|(?:(?!\$\{\w+\}).)+", re.DOTALL)
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class CommandScorer:
    """A score that a command prints."""

    name: str
    command: str
    timeout: float = TIMEOUT  # seconds a shard

    def load(self) -> Scorer:
        """The scorer that runs the command; it does not start anything."""
        return Scorer(
            function=partial(_score, self),
            meaning=f"computed by the command {shown_words(self.command)}",
            unit="score",
            range=(None, None),
            reads=("source", "reference", "translation"),
            whole_shard=True,
        )

    @property
    def shown(self) -> str:
        """The name and what may be shown of the command, for messages."""
        return f"{self.name}: `{shown_words(self.command)}`"

    def key(self) -> Any:
        """The command: the program itself may be anywhere."""
        return self.command


@dataclass(slots=True)
class _Ended:
    """How a program ended: what it printed, or why it failed, and the end of its stderr."""

    lines: list[bytes]
    failure: str = ""
    stderr: bytes = b""


def _score(scorer: CommandScorer, pairs: PairText) -> Outcome:
    lines, stderr = _output(scorer, _table(pairs), len(pairs))
    if len(lines) != len(pairs):
        most = min(len(lines), len(pairs))
        printed = f"{'more than ' * (most < len(lines))}{most:,} line{'s' * (most != 1)}"
        raise UserError(
            f"{scorer.shown} printed {printed} for {len(pairs):,} pairs; it must print one number "
            f"a pair; {_last_line(stderr)}"
        )
    short = [line if len(line) <= _LONGEST else b"" for line in lines]
    values, known = numbers(pa.array(short, pa.binary()))
    return Outcome(values, np.where(known, "", "no number").astype(object))


def _table(pairs: PairText) -> bytes:
    """The pairs as the program reads them."""
    texts = pairs.source_text, pairs.reference_text, pairs.translation_text
    rows = pc.binary_join_element_wise(*map(spaced, texts), "\t").to_pylist()
    return "\n".join([*rows, ""]).encode()


def _output(scorer: CommandScorer, table: bytes, rows: int) -> tuple[list[bytes], bytes]:
    """The lines that the program prints, and the end of its stderr; it is started again if it
    fails.
    """
    for _ in range(_TRIES):
        ended = _run(scorer, table, rows)
        if not ended.failure:
            return ended.lines, ended.stderr
        say(f"{scorer.shown} {ended.failure}")
    raise UserError(f"{scorer.shown} {ended.failure}, {_TRIES} times; {_last_line(ended.stderr)}")


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    if not lines:
        return "nothing is on its stderr"
    return f"the last line on its stderr: {''.join(filter(str.isprintable, lines[-1]))[:_SHOWN]}"


def shown_words(command: str) -> str:
    """What anyone may see of a command: names of its program, files, options and variables.

    >>> shown_words("/opt/bin/score --model m --key ${KEY} -b 8 --to=https://me:word@host")
    'score --model … --key ${KEY} -b … --to=…'
    """
    program, *words = shlex.split(command)
    line = " ".join([PurePath(program).name, *map(_shown_word, words)])
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _shown_word(word: str) -> str:
    if os.path.isfile(word):  # noqa: PTH113 (Path's fails if the word is long)
        return shlex.quote(PurePath(word).name)
    option = _OPTION.match(word)
    name = option[0] if option else ""
    return name + _VALUE.sub(lambda part: part[1] or "…", word[len(name) :])


def _run(scorer: CommandScorer, table: bytes, rows: int) -> _Ended:
    deadline = time.monotonic() + scorer.timeout
    lifeline, held = os.pipe()
    try:
        process = subprocess.Popen(
            [*_SUPERVISE, str(lifeline), *shlex.split(scorer.command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[lifeline],
            start_new_session=True,
        )
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(lifeline)
    assert process.stdin and process.stdout and process.stderr
    end: deque[bytes] = deque(maxlen=2)
    threads = [
        Thread(target=_feed, args=(process.stdin, table), daemon=True),
        Thread(target=_log, args=(process.stderr, end), daemon=True),
    ]
    lines, failure = None, ""
    try:
        for thread in threads:
            thread.start()
        lines = _read(process.stdout, rows, deadline)
        if lines is not None and len(lines) <= rows:
            process.wait(max(deadline - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        lines = None
    finally:
        os.close(held)  # kills the program, if it still runs
        code = process.wait()
        for thread in threads:
            thread.join(1)
        process.stdout.close()
    if lines is None:
        failure = f"did not end within {scorer.timeout:,g} seconds"
    elif code and len(lines) <= rows:
        failure = _how(code)
    return _Ended(lines or [], failure, b"".join(end))


def _how(code: int) -> str:
    with suppress(ValueError):
        return f"was killed ({signal.Signals(code - 128).name})"
    return f"ended with exit code {code}"


def _feed(stdin: IO[bytes], table: bytes) -> None:
    with suppress(OSError), stdin:  # a program may end before it has read all
        stdin.write(table)


def _log(stderr: IO[bytes], end: deque[bytes]) -> None:
    """Copy the program's stderr to this process's; keep its last blocks in `end`."""
    with stderr:
        while block := os.read(stderr.fileno(), _BLOCK):
            end.append(block)
            with suppress(OSError):  # a full disk
                os.write(2, block)


def _read(stdout: IO[bytes], rows: int, deadline: float) -> list[bytes] | None:
    """The lines of the output, up to a few more than `rows`; None if time runs out.

    Of a line that is too long for a number, only its beginning is kept.
    """
    lines: list[bytes] = []
    rest = b""
    waiting = select.poll()
    waiting.register(stdout, select.POLLIN)
    while waiting.poll(max(deadline - time.monotonic(), 0) * 1000):
        block = os.read(stdout.fileno(), _BLOCK)
        *whole, rest = (rest + block).split(b"\n")
        lines += (line[: _LONGEST + 1] for line in whole)
        rest = rest[: _LONGEST + 1]
        if not block or len(lines) > rows:
            return [*lines, rest] if rest else lines
    return None
