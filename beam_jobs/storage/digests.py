"""SHA-256 of input files, which are read again only if they may have changed.

Digests are kept in the user's cache, under a name made from the file's size, times and inode, or
from the store's checksum. A damaged cache file is ignored and rewritten.
"""

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import content_key
from paraloom.models.errors import UserError
from paraloom.models.files import user_cache

_SHA256 = re.compile(rb"[0-9a-f]{64}")
_SETTLED = 2.0  # seconds; within them, a file may change again with the same times


def file_digest(path: str) -> str:
    """SHA-256 of a file in hexadecimal; raises the same errors as `storage.file_digest`."""
    place = path if storage.is_remote(path) else str(Path(path).absolute())
    started = time.time()
    if not storage.exists(path):
        return storage.file_digest(path)  # raises the error
    state, changed = _state(path)
    record = user_cache() / "digests" / content_key(place, state)  # a path may hold a password
    with suppress(OSError):
        if _SHA256.fullmatch(known := record.read_bytes()):
            return known.decode()
    sha256 = storage.file_digest(path)
    with suppress(OSError, UserError):  # the file is then read again
        if _state(path)[0] == state and changed < started - _SETTLED:
            storage.write_bytes(str(record), sha256.encode())
    return sha256


def _state(path: str) -> tuple[list[Any], float]:
    """A value that differs if a file may have changed, and the time of its last change, if
    relevant."""
    if storage.is_remote(path):
        return [storage.match(path)], 0.0
    of = Path(path).stat()
    state = [of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns]
    return state, max(of.st_mtime, of.st_ctime)
