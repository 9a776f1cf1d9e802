"""Limits of the system that end work: open files, threads and processes, memory."""

import resource

from paraloom.models.errors import UserError

_FILES = "too many files are open: raise `ulimit -n`"
_THREADS = (
    "no further thread or process can be started: raise `ulimit -u`, `ulimit -v`, or the limit of "
    "the container (pids.max)"
)
_MEMORY = "out of memory; `paraloom estimate` shows how much a run needs"

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


def check_files(workers: int) -> None:
    """Raise the soft limit of open files to what so many workers take.

    Raises:
        UserError: the hard limit is lower. Beam and gRPC would wait without end.
    """
    files = 24 + 6 * workers  # what Beam and gRPC take at least
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < files:
        if 0 <= hard < files:
            fewer = "or take fewer workers (-- --direct_num_workers N)"
            raise UserError(f"{_FILES} from {hard} to {files}; {fewer}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
