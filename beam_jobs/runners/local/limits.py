"""Limits of the system that end work: open files, threads and processes, memory."""

import resource
import threading

from paraloom.models.errors import UserError

_FILES = "too many files are open: raise `ulimit -n`"
_THREADS = (
    "no further thread or process can be started: raise `ulimit -u`, `ulimit -v`, or the limit of "
    "the container (pids.max)"
)
_MEMORY = "out of memory; `paraloom estimate` shows how much a run needs"

_FEWER = "; or take fewer workers (-- --direct_num_workers N)"
_STACK = 4 << 20  # bytes, half of the usual: half of the threads will be of other processes

COUNTS = {
    "Too many open files": _FILES,
    "File descriptor limit reached": _FILES,  # gRPC, which waits for a free one without end
    "can't start new thread": _THREADS,
    "pthread_create failed": _THREADS,
    "BlockingIOError: [Errno 11] Resource": _THREADS,  # of a fork
}
"""What libraries say at a limit of files, threads or processes, and what we say."""

# torch has no class for it on a CPU; Beam's error of a worker is a text that ends in the class and
# message of the worker's, such as Arrow's ArrowMemoryError.
_ALL = COUNTS | dict.fromkeys(
    ("MemoryError", "out of memory", "llocate memory", "bad_alloc", "failed to map"), _MEMORY
)


def limit_in(text: str, kinds: dict[str, str] = _ALL) -> str | None:
    """The limit that an error's text speaks of, and what to do; None if it is another error."""
    return next((limit for said, limit in kinds.items() if said in text), None)


def check_limits(workers: int) -> None:
    """Check that the system has files and threads for so many workers; raise the soft limit.

    Raises:
        UserError: it has not. Beam and gRPC would wait without end, or abort the process.
    """
    files, threads = 24 + 6 * workers, 16 + 24 * workers  # what Beam and gRPC take at least
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < files:
        if 0 <= hard < files:
            raise UserError(f"{_FILES} from {hard} to {files}{_FEWER}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    over = threading.Event()
    size = threading.stack_size(_STACK)
    try:
        for _ in range(threads):
            threading.Thread(target=over.wait, daemon=True).start()
    except RuntimeError as error:
        raise UserError(f"{_THREADS}; {threads} threads are needed{_FEWER}") from error
    finally:
        over.set()
        threading.stack_size(size)
