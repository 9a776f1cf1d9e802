"""Seconds and memory of a command and all processes that it starts."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall-clock seconds, and the peak of the process tree's memory.

    `peak_rss` counts pages that processes share once for each of them, `peak_pss` once in all.
    """

    seconds: float
    peak_rss: int
    peak_pss: int


def cost(command: list[str], *, every: float = 0.2) -> Cost:
    """Run a command to its end and watch its process tree; bytes.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    started = time.monotonic()
    process = subprocess.Popen(command)
    root = psutil.Process(process.pid)
    peak_rss = peak_pss = 0
    while process.poll() is None:
        rss = pss = 0
        try:
            tree = [root, *root.children(recursive=True)]
        except psutil.Error:
            break
        for member in tree:
            try:
                memory = member.memory_full_info()
            except psutil.Error:
                continue
            rss, pss = rss + memory.rss, pss + memory.pss
        peak_rss, peak_pss = max(peak_rss, rss), max(peak_pss, pss)
        time.sleep(every)
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.monotonic() - started, peak_rss, peak_pss)
