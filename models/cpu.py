"""CPU cores and instruction sets that a process may use."""

import os
from pathlib import Path

CORES = "PARALOOM_CORES"
"""Environment variable with the maximum number of cores that a worker may use."""


def cores() -> int:
    """Return the number of CPU cores that this process may use, at most `PARALOOM_CORES`."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    limit = os.environ.get(CORES, "")
    return min(available, int(limit)) if limit.isdecimal() and int(limit) else available


def allow_avx512() -> None:
    """Make CTranslate2 use AVX-512 instead of AVX2 on CPUs with VNNI.

    Older CPUs, which have no VNNI, lower their clock rate for AVX-512.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text().split("flags", 2)[1].split("\n")[0].split()
    except (OSError, IndexError):  # not Linux on x86
        return
    if {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"} <= set(flags):
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
