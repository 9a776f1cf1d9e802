"""What benchmarks share: the command line, the captions of Multi30k, measurements and tables.

`cost` measures the time, memory and open files of commands. `in_turns` measures the time of
functions. `Measured` prints and writes the figures of a benchmark.
"""

import gzip
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import typer
from numpy.typing import NDArray

from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file
from paraloom.pipeline.commands.console import console, number_table

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("PARALOOM_DATA", ROOT.parent / "shared" / "data"))
MODEL = str(DATA.parent / "nmt" / "multi30k-cs-en")


def command_line(main: Callable[..., None]) -> None:
    """Call `main` with its parameters as command-line options, and print a `UserError` as one line.

    The process exits with status 2 after a `UserError`.
    """
    try:
        typer.run(main)
    except UserError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(2)


def read_side(language: str, folder: Path = DATA / "multi30k", name: str = "train") -> list[str]:
    """Read the captions of Multi30k in one language: `cs`, `en` or `fr`.

    Raises:
        UserError: the file is missing.
    """
    path = folder / f"{name}.{language}.gz"
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; set PARALOOM_DATA")
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


@dataclass(frozen=True, slots=True)
class Cost:
    """Time, peak memory in bytes and peak number of open files of a process tree.

    `own_seconds` is the CPU time of the first process alone, which is the launcher of a run. In
    `peak_rss`, a page that several processes share counts once per process. In `peak_pss`, a shared
    page counts only once.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    own_seconds: float = 0.0
    peak_rss: int = 0
    peak_pss: int = 0
    peak_files: int = 0


def paraloom(*arguments: str, workers: int | None = None) -> list[str]:
    """Return the command line that runs `paraloom` with this Python and this number of workers."""
    beam = ["--", "--direct_num_workers", str(workers)] if workers else []
    return [sys.executable, "-m", "paraloom.pipeline.cli", *arguments, *beam]


def cost(command: list[str], log: Path | None = None) -> Cost:
    """Run a command to its end, and measure its process tree five times a second.

    Args:
        log: a file that receives the output of the command.

    Raises:
        UserError: the command failed. The error has the last line of the log.
    """
    started = time.monotonic()
    stream = log.open("wb") if log else None
    process = subprocess.Popen(command, stdout=stream, stderr=stream)
    root = psutil.Process(process.pid)
    peaks = np.zeros(3, np.int64)  # RSS, PSS, open files
    cpu: dict[int, float] = {}
    while process.poll() is None:
        now = np.zeros(3, np.int64)
        try:
            tree = [root, *root.children(recursive=True)]
        except psutil.Error:
            break
        for member in tree:
            try:
                memory, times = member.memory_full_info(), member.cpu_times()
                now += memory.rss, memory.pss, member.num_fds()
            except psutil.Error:
                continue
            cpu[member.pid] = times.user + times.system
        peaks = np.maximum(peaks, now)
        time.sleep(0.2)
    if stream:
        stream.close()
    if process.wait():
        said = log.read_text(errors="replace").strip().rpartition("\n")[2] if log else "see above"
        raise UserError(f"{shlex.join(command)}: exit status {process.returncode} ({said})")
    seconds = time.monotonic() - started
    return Cost(seconds, sum(cpu.values()), cpu.get(process.pid, 0.0), *peaks.tolist())


def in_turns(
    runs: Mapping[str, Callable[[], Any]], rounds: int
) -> tuple[dict[str, NDArray[np.float64]], dict[str, Any]]:
    """Call every function once per round, so that changing load affects all of them alike.

    Returns:
        The times of each function, [rounds, 2]: wall-clock seconds, and CPU seconds of this
        process. The second dictionary has the last result of each function.
    """
    seconds: dict[str, list[list[float]]] = {name: [] for name in runs}
    results = {}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.monotonic(), time.process_time()
            results[name] = run()
            ended = time.monotonic(), time.process_time()
            seconds[name].append([b - a for a, b in zip(started, ended, strict=True)])
    return {name: np.array(times) for name, times in seconds.items()}, results


def print_table(
    title: str | None, names: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table with left-aligned columns `names` and right-aligned columns `numbers`."""
    console(240).print(number_table(title, *names, numbers=numbers, rows=rows))


class Measured:
    """Figures and ratios of one benchmark."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.figures: dict[str, float] = {}
        self.ratios: dict[str, float] = {}

    def add(self, name: str, value: float) -> None:
        """Add a measured figure."""
        self.figures[name] = value

    def ratio(self, name: str, value: float, against: float) -> None:
        """Add the ratio of two values that were measured in the same call."""
        self.ratios[name] = value / against

    def done(self, name: str) -> None:
        """Print the figures and write them to `results/<name>.json`."""
        rows = [(n, f"{v:,.2f}" if abs(v) < 100 else f"{v:,.0f}") for n, v in self.figures.items()]
        rows += [(what, f"{value:.2f} ×") for what, value in self.ratios.items()]
        console(100).print(number_table(self.title, "figure", numbers=["measured"], rows=rows))
        content = {
            "title": self.title,
            "figures": self.figures,
            "ratios": self.ratios,
            "machine": {"cores": len(os.sched_getaffinity(0)), "platform": platform.platform()},
        }
        RESULTS.mkdir(exist_ok=True)
        with atomic_file(RESULTS / f"{name}.json") as path:
            path.write_text(json.dumps(content, indent=1))
