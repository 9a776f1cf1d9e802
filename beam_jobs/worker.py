"""A worker process on this machine: Beam's own, but it ends with the process that launched it.

Beam's outlives a launcher that was killed: it finishes what it was given, into a folder that the
next run may be writing anew, and then waits.
"""

from __future__ import annotations

import os
import select
import shlex
import sys
import threading
from contextlib import suppress
from typing import Any


def command() -> str:
    """The shell command that starts a worker of this process."""
    return f"exec {shlex.quote(sys.executable)} -m {__name__} {os.getpid()}"


class Lossy:
    """A stream for logs that loses what it cannot write.

    Beam prints an error before it reports it: on a full disk it would never report it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write if that is possible."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush if that is possible."""
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _end_with(launcher: int) -> None:
    try:
        process = os.pidfd_open(launcher)
    except ProcessLookupError:
        os._exit(1)
    except OSError:  # a kernel without pidfd
        return
    select.select([process], [], [])
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    sys.stderr = Lossy(sys.stderr)

    from apache_beam.runners.worker.sdk_worker_main import main

    main(sys.argv[:1])
