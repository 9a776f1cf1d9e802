"""Whole files on any file system that Beam knows, local ones without a detour.

A shard is some thousand rows, so a file is read and written as one piece of bytes. Locally a write
goes to a temporary name and is renamed; an object store shows an object only when it is complete.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import xxhash
from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from models import files
from models.errors import UserError
from models.files import atomic_file


def is_remote(path: str) -> bool:
    """Whether `path` names another file system (`gs://…`, `s3://…`)."""
    return "://" in path


def join(folder: str, *names: str) -> str:
    """A path below `folder`."""
    return FileSystems.join(folder, *names) if is_remote(folder) else str(Path(folder, *names))


def read_bytes(path: str) -> bytes:
    """The content of a file.

    Raises:
        UserError: it is not there or cannot be read; names the path.
    """
    try:
        if not is_remote(path):
            return Path(path).read_bytes()
        stream = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
        with stream:
            return stream.read()
    except (OSError, BeamIOError) as error:
        raise UserError(f"{path}: cannot be read ({_why(error)})") from error


def write_bytes(path: str, data: bytes) -> None:
    """Put `data` at `path`, whole or not at all.

    Raises:
        UserError: the folder cannot be written or the disk is full; names the path.
    """
    if not is_remote(path):
        with atomic_file(path) as temporary:
            temporary.write_bytes(data)
        return
    try:
        stream = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
        with stream:
            stream.write(data)
    except (OSError, BeamIOError) as error:
        raise UserError(f"{path}: cannot be written ({_why(error)})") from error


@contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """A stream for a file too large to hold; it is at `path` only if the block ends well.

    Raises:
        UserError: as `write_bytes`.
    """
    if not is_remote(path):
        with atomic_file(path) as temporary, temporary.open("wb") as stream:
            yield stream
        return
    # An object store shows the object when the stream is closed: leave it open after a failure.
    stream = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
    yield stream
    stream.close()


def exists(path: str) -> bool:
    """Whether a file is at `path`."""
    return Path(path).exists() if not is_remote(path) else FileSystems.exists(path)


def names(folder: str) -> list[str]:
    """The sorted names of the visible files directly in `folder`; none where it is missing."""
    if not is_remote(folder):
        try:
            with os.scandir(folder) as entries:
                return sorted(e.name for e in entries if e.is_file() and e.name[0] != ".")
        except (FileNotFoundError, NotADirectoryError):
            return []
    found = FileSystems.match([join(folder, "*")])[0].metadata_list
    return sorted(entry.path.rsplit("/", 1)[1] for entry in found)


def remove(path: str) -> None:
    """Remove the file at `path` if there is one."""
    if not is_remote(path):
        Path(path).unlink(missing_ok=True)
    elif FileSystems.exists(path):
        FileSystems.delete([path])


def remove_temporary(folder: str) -> None:
    """Remove the files in `folder` that a process was writing when it was killed."""
    if not is_remote(folder) and Path(folder).is_dir():
        for path in Path(folder).glob(".*.*.????????"):
            path.unlink(missing_ok=True)


def size(path: str) -> int:
    """Bytes of a file."""
    if not is_remote(path):
        return Path(path).stat().st_size
    return FileSystems.match([path])[0].metadata_list[0].size_in_bytes


def file_digest(path: str) -> str:
    """SHA-256 of a file that may be large, in hexadecimal."""
    if not is_remote(path):
        return files.digest(path)
    total = hashlib.sha256()
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        while block := stream.read(1 << 22):
            total.update(block)
    return total.hexdigest()


def digest(data: bytes) -> str:
    """The checksum that shards are known by (XXH3, 128 bits, hexadecimal)."""
    return xxhash.xxh3_128_hexdigest(data)


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).splitlines()[0]
