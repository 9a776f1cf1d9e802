"""The number of CPU cores that a process may use."""

import os

CORES = "PARALOOM_CORES"
"""Environment variable that limits a worker if several workers share the machine."""


def cores() -> int:
    """Number of cores that this process may use: its affinity, limited by `PARALOOM_CORES`."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    limit = os.environ.get(CORES, "")
    return min(available, int(limit)) if limit.isdecimal() and int(limit) else available
