"""Limits of the system are known by what libraries say, and before the work begins."""

import resource

import pytest

from paraloom.beam_jobs.runners.local.limits import COUNTS, check_files, limit_in
from paraloom.models.errors import UserError


def test_what_libraries_say() -> None:
    said = {
        "E1123 posix_engine_listener.cc:164] File descriptor limit reached. Retrying.": "ulimit -n",
        "OSError: [Errno 24] Too many open files: '/a'": "ulimit -n",
        "thd.cc:157] pthread_create failed: Resource temporarily unavailable": "pids.max",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable": "pids.max",
        "OSError: [Errno 12] Cannot allocate memory": "out of memory",
        "ImportError: /lib/a.so: failed to map segment from shared object": "out of memory",
    }
    for text, limit in said.items():
        assert limit in str(limit_in(text))
    assert limit_in("KeyError: 'a bug'") is None
    assert limit_in("MemoryError", COUNTS) is None


def test_the_soft_limit_of_files_is_raised() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (80, before[1]))
    try:
        check_files(1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 80
        check_files(10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (84, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_hard_limit_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 24))
    with pytest.raises(UserError, match="raise `ulimit -n` from 24 to 36"):
        check_files(2)
