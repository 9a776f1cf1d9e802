"""SHA-256 of input files, which are read again only if they may have changed.

The user's cache holds the digests. The name of each is made of the file's size, times and place on
disk, or of the store's checksum. A damaged record is ignored, and written again.
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
_SETTLED = 2.0  # seconds; a file may change again with the same times


def file_digest(path: str) -> str:
    """SHA-256 of a file in hexadecimal; raises what `storage.file_digest` raises."""
    place = path if storage.is_remote(path) else str(Path(path).absolute())
    started = time.time()
    if not storage.exists(path):
        return storage.file_digest(path)  # raises what it says
    state, changed = _state(path)
    record = user_cache() / "digests" / content_key(place, state)  # a path may hold a password
    with suppress(OSError):
        if _SHA256.fullmatch(known := record.read_bytes()):
            return known.decode()
    sha256 = storage.file_digest(path)
    with suppress(OSError, UserError):  # the file is read once more
        if _state(path)[0] == state and changed < started - _SETTLED:
            storage.write_bytes(str(record), sha256.encode())
    return sha256


def _state(path: str) -> tuple[list[Any], float]:
    """What is not the same if a file may have changed, and when it last did, if that counts."""
    if storage.is_remote(path):
        return [storage.match(path)], 0.0
    of = Path(path).stat()
    state = [of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns]
    return state, max(of.st_mtime, of.st_ctime)
