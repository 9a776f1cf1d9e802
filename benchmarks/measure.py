"""Seconds, memory and open files of a command and all processes that it starts."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall-clock and CPU seconds, and peaks of the process tree: memory in bytes, open files.

    `own_seconds` are the CPU seconds of the command's first process alone, which is the launcher of
    a run. `peak_rss` counts shared pages once for each process, `peak_pss` counts them once in all.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    own_seconds: float = 0.0
    peak_rss: int = 0
    peak_pss: int = 0
    peak_files: int = 0


def paraloom(*arguments: str, workers: int | None = None) -> list[str]:
    """The command line that runs `paraloom` with the present Python, with `workers` if given."""
    beam = ["--", "--direct_num_workers", str(workers)] if workers else []
    return [sys.executable, "-m", "paraloom.pipeline.cli", *arguments, *beam]


def cost(command: list[str], *, every: float = 0.2, log: Path | None = None) -> Cost:
    """Run a command to its end and watch its process tree.

    Args:
        every: seconds between two measurements.
        log: a file for what the command prints.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    started = time.monotonic()
    stream = log.open("wb") if log else None
    process = subprocess.Popen(command, stdout=stream, stderr=stream)
    root = psutil.Process(process.pid)
    peak_rss = peak_pss = peak_files = 0
    cpu: dict[int, float] = {}
    while process.poll() is None:
        rss = pss = files = 0
        try:
            tree = [root, *root.children(recursive=True)]
        except psutil.Error:
            break
        for member in tree:
            try:
                memory, times = member.memory_full_info(), member.cpu_times()
                files += member.num_fds()
            except psutil.Error:
                continue
            rss, pss = rss + memory.rss, pss + memory.pss
            cpu[member.pid] = times.user + times.system
        peak_rss, peak_pss = max(peak_rss, rss), max(peak_pss, pss)
        peak_files = max(peak_files, files)
        time.sleep(every)
    if stream:
        stream.close()
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds = time.monotonic() - started
    own = cpu.get(process.pid, 0.0)
    return Cost(seconds, sum(cpu.values()), own, peak_rss, peak_pss, peak_files)
