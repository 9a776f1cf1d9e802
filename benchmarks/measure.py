"""Measures the time, memory and open files of commands, and the time of functions."""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from paraloom.models.errors import UserError


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


def cost(command: list[str], *, every: float = 0.2, log: Path | None = None) -> Cost:
    """Run a command to its end and measure its process tree.

    Args:
        every: seconds between two measurements.
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
        time.sleep(every)
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
