"""Ctrl-C during a pipeline of the local runner.

Beam waits for its workers and threads, at times without end. The workers end with this process, and
what they have not finished is done when the same command resumes.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO

from paraloom.models.printing import INTERRUPTED, say
from paraloom.models.progress import SHOW_CURSOR

_PATIENCE = 10.0  # seconds


@contextmanager
def ends_when_interrupted(terminal: IO[str]) -> Iterator[None]:
    """End this process with exit code 130 if the block goes on for 10 s after Ctrl-C.

    A process that ignores Ctrl-C, as shells let their background jobs, still does.
    """
    main = threading.current_thread() is threading.main_thread()  # where signals arrive
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    timers: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        timers.append(threading.Timer(_PATIENCE, _end, [terminal]))
        timers[-1].daemon = True
        timers[-1].start()
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for timer in timers:
            timer.cancel()


def _end(terminal: IO[str]) -> None:
    with suppress(OSError):
        if terminal.isatty():
            terminal.write(SHOW_CURSOR)
        say(INTERRUPTED, terminal)
    os._exit(130)
