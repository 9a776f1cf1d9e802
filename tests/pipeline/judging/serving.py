"""The real server, in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.run_helpers import ROOT


class Served:
    """`paraloom judge` at work on a run; `url` is the address of the page."""

    def __init__(self, run: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "paraloom.pipeline.cli", "judge", str(run), *options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell in the background ignores SIGINT, and so would its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert self.process.stdout
        self.printed: list[str] = []
        for line in self.process.stdout:
            self.printed.append(line.strip())
            if found := re.search(r"http://\S+", line):
                self.url = found.group()
                return
        raise AssertionError(self.process.communicate()[1])

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        """Send a signal; gives the exit code and what was printed since the address."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@contextmanager
def serving(run: Path, *options: str) -> Iterator[Served]:
    """The server, killed at the end if it still runs."""
    served = Served(run, *options)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.stop(signal.SIGKILL)
