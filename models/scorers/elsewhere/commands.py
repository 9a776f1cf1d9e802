"""Scores that a program of the user's prints, in an environment of its own: one run for each shard.

The program gets the pairs on its standard input, a line each: source, reference and translation,
separated by tabs, in UTF-8. It prints a number a line.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models.errors import UserError
from paraloom.models.printing import say
from paraloom.models.scorers.base import Outcome, Scorer
from paraloom.models.scorers.elsewhere import supervise
from paraloom.models.scorers.elsewhere.numbers import numbers
from paraloom.models.scorers.plugins import ScorerSource
from paraloom.models.text.controls import spaced
from paraloom.models.text.tokens import PairText

TIMEOUT = 3600.0
"""Seconds that a program has for a shard, unless the configuration says otherwise."""

_SUPERVISE = (sys.executable, "-I", "-S", supervise.__file__)
_TRIES = 3
_SHOWN = 300  # characters of a command, and of the last line of its stderr
_OPTION = re.compile(r"(--[a-z][a-z_-]*|-[A-Za-z])(=|$)")
_VALUE = re.compile(r"(\$\{\w+\})|(?:(?!\$\{\w+\}).)+", re.DOTALL)


@dataclass(frozen=True)
class CommandScorer(ScorerSource):
    """A score that a command prints."""

    command: str
    timeout: float = TIMEOUT  # seconds a shard

    def load(self) -> Scorer:
        """The scorer that runs the command; it does not start anything."""
        return Scorer(
            function=self._score,
            meaning=f"computed by the command {shown_words(self.command)}",
            unit="score",
            range=(None, None),
            reads=("source", "reference", "translation"),
            whole_shard=True,
        )

    def key(self) -> Any:
        """The command: the program itself may be anywhere."""
        return self.command

    def _score(self, pairs: PairText) -> Outcome:
        """Run the command, and again if it fails."""
        texts = pairs.source_text, pairs.reference_text, pairs.translation_text
        rows = pc.binary_join_element_wise(*map(spaced, texts), "\t").to_pylist()
        table = "\n".join([*rows, ""]).encode()
        shown = f"{self.name}: `{shown_words(self.command)}`"
        for _ in range(_TRIES):
            stdout, stderr, failure = self._run(table)
            if not failure:
                break
            say(f"{shown} {failure}")
        else:
            raise UserError(f"{shown} {failure}, {_TRIES} times; {_last_line(stderr)}")
        lines = stdout.removesuffix(b"\n").split(b"\n") if stdout else []
        if len(lines) != len(pairs):
            raise UserError(
                f"{shown} printed {len(lines):,} lines for {len(pairs):,} pairs; it must print one "
                f"number a pair; {_last_line(stderr)}"
            )
        values, known = numbers(pa.array(lines, pa.binary()))
        return Outcome(values, np.where(known, "", "no number").astype(object))

    def _run(self, table: bytes) -> tuple[bytes, bytes, str]:
        """What the command prints on stdout and stderr, and why it failed, if it did."""
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as lifeline, os.fdopen(writing, "wb") as held:
            descriptor = lifeline.fileno()
            with subprocess.Popen(
                [*_SUPERVISE, str(descriptor), *shlex.split(self.command)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[descriptor],
                start_new_session=True,
            ) as process:
                try:
                    stdout, stderr = process.communicate(table, self.timeout)
                    failure = _how(process.returncode)
                except subprocess.TimeoutExpired as late:
                    stdout, stderr = b"", late.stderr or b""
                    failure = f"did not end within {self.timeout:,g} seconds"
                finally:
                    held.close()  # kills the program, if it still runs
        with suppress(OSError):  # a full disk
            os.write(2, stderr)
        return stdout, stderr, failure


def _how(code: int) -> str:
    """How a program failed; empty if it did not."""
    with suppress(ValueError):
        return f"was killed ({signal.Signals(code - 128).name})"
    return f"ended with exit code {code}" if code else ""


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
