"""The peak of this process's resident memory."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_memory() -> int:
    """Bytes: the most that this process held since it started, or since `forget_peak`."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Let the peak begin anew from what is held now; on other systems than Linux it stays."""
    with suppress(OSError):
        _CLEAR.write_text("5")
