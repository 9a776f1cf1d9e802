"""Runs cases: each ends well or with an error that is one line, in bounded time and memory."""

import contextlib
import io
import os
import resource
import shutil
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main

SECONDS = 60  # that a case may take; a busy machine is no failure
MEMORY = 2 << 30  # bytes by which a case may enlarge the process

Case = Callable[[Random, Path], None]
"""Tries one input, given random numbers and an empty folder; raises what it finds."""


@dataclass
class Found:
    """What cases found, and how many there were of each target."""

    cases: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)  # the first case, by kind of failure


def allowed(call: Callable[[], Any]) -> Any:
    """Call a function, which may raise an error that the command line makes one line; None then."""
    try:
        return call()
    except UserError as error:
        assert "\n" not in str(error), f"several lines: {error}"
    except (AssertionError, TimeoutError):
        raise
    except Exception:
        pass
    return None


def command(arguments: Sequence[str]) -> int:
    """Run the command line; an error is one line, and the last one."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    lines = err.getvalue().splitlines()
    assert code in (0, 1, 2), f"exit code {code}"
    assert code != 2 or (lines and lines[-1].startswith("paraloom: ")), f"exit code 2: {lines}"
    assert not any("Traceback" in line for line in lines), lines
    assert "\x1b" not in out.getvalue() + err.getvalue(), "an escape sequence was printed"
    return code


def run_case(name: str, case: Case, seed: str, folder: Path, found: Found) -> None:
    """Run the case of a seed in a folder of its own, and record what it finds."""
    place = folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    memory, here = _peak(), Path.cwd()
    found.cases[name] += 1
    try:
        os.chdir(place)
        with _limited():
            case(Random(seed), place)
        grown = _peak() - memory
        assert grown < MEMORY, f"the process grew by {grown >> 20} MiB"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a library in Rust is no `Exception`
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if f"{Path(__file__).parents[2]}/" in f.filename]
        last = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
        text = " ".join(str(error).split())[:300]
        found.failures.setdefault(f"{name} {type(error).__name__} {last}", f"seed {seed}: {text}")
    finally:
        os.chdir(here)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    former = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
