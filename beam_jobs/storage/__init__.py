"""Read and write whole files atomically, on disk or in an object store.

A shard is small enough to be read or written as one block of bytes. Local files are written under a
temporary name and then renamed. Object stores show an object only when it is complete.

Functions raise `MissingError` if a file does not exist, and `UserError` if it cannot be read or
written. The error names the path.
"""

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO, TypeVar

import xxhash

from paraloom.beam_jobs.storage.clients import StoredObject, opened, store
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, file_state, kept_digest, temporary_path

Item = TypeVar("Item")
Result = TypeVar("Result")

_interrupted = threading.Event()  # set while `several` waits for its threads after Ctrl-C


class MissingError(UserError):
    """The file does not exist."""


def is_remote(path: str) -> bool:
    """Whether `path` is in an object store (`gs://…`, `s3://…`)."""
    return "://" in path


def join(folder: str, *names: str) -> str:
    """Join the parts of a path. `pathlib.Path` would be too slow for many receipts."""
    return os.path.join(folder, *names)  # noqa: PTH118


def open_file(path: str) -> BinaryIO:
    """Open a file for reading bytes, without decompression. The caller closes it."""
    with _file_errors(path, "read"):
        return opened(path) if is_remote(path) else Path(path).open("rb")


def read_bytes(path: str, start: int = 0, end: int | None = None) -> bytes:
    """Read a file, or its bytes from `start` to `end`. An object store gets one request."""
    with _file_errors(path, "read"):
        if is_remote(path):
            place, bucket, name = store(path)
            return place.read(bucket, name, start, end)
        with Path(path).open("rb") as stream:
            stream.seek(start)
            return stream.read(-1 if end is None else end - start)


def write_bytes(path: str, data: bytes, *, replace: bool = True) -> bool:
    """Write `data`, which must not be empty, to `path` atomically; return whether it was written.

    With `replace=False`, an existing file is kept. An object store cannot guarantee this: a file
    that another process writes between the check and the write is replaced.
    """
    if not replace and exists(path):
        return False
    if is_remote(path):
        with _file_errors(path, "written"):
            place, bucket, name = store(path)
            place.write(bucket, name, data)
        return True
    target = path if replace else str(temporary_path(Path(path)))
    with writing(target) as stream:
        stream.write(data)
    return replace or _linked(Path(target), Path(path))


def _linked(temporary: Path, path: Path) -> bool:
    """Rename `temporary` to `path` unless `path` exists. A hard link makes this atomic."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError:  # the file system has no hard links
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


@contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """Open a file for writing; it appears at `path` only if the block succeeds."""
    if not is_remote(path):
        with atomic_file(path) as temporary, temporary.open("wb") as stream:
            yield stream
        return
    with tempfile.NamedTemporaryFile() as stream:
        yield stream  # type: ignore[misc]
        stream.flush()
        _send(Path(stream.name), path)


def _send(file: Path, path: str) -> None:
    with _file_errors(path, "written"):
        place, bucket, name = store(path)
        place.send(bucket, name, file)


def copy(source: str, target: str) -> None:
    """Copy a file, which must not be empty, atomically between any two file systems."""
    if is_remote(target) and not is_remote(source):
        return _send(Path(source), target)
    with open_file(source) as stream, writing(target) as sink:
        for chunk in _chunks(stream):
            sink.write(chunk)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file of any size. After Ctrl-C, raise a KeyboardInterrupt."""
    while chunk := stream.read(1 << 23):
        if _interrupted.is_set():
            raise KeyboardInterrupt
        yield chunk


def exists(path: str) -> bool:
    """Whether `path` is a file, or a local folder."""
    if not is_remote(path):
        return Path(path).exists()
    try:
        return size(path) >= 0
    except MissingError:
        return False


def names(folder: str) -> list[str]:
    """Return the sorted names of the visible files in `folder`, which need not exist."""
    if not is_remote(folder):
        try:
            with os.scandir(folder) as entries:
                return sorted(e.name for e in entries if e.is_file() and e.name[0] != ".")
        except (FileNotFoundError, NotADirectoryError):
            return []
    return list(sizes(folder))


def sizes(folder: str) -> dict[str, int]:
    """Return the sizes of the visible files in `folder` by name. The folder need not exist."""
    if not is_remote(folder):
        return {name: size(join(folder, name)) for name in names(folder)}
    found = {entry.path.rsplit("/", 1)[1]: entry.size for entry in _listed(f"{folder}/", "/")}
    return dict(sorted(found.items()))


def match(pattern: str) -> list[StoredObject]:
    """Return the objects that match a pattern: `*` matches within a name, `**` across folders."""
    from apache_beam.io.filesystem import FileSystem

    fits = re.compile(FileSystem.translate_pattern(pattern)).fullmatch
    prefix = re.split(r"[*?[]", pattern, maxsplit=1)[0]
    return [entry for entry in _listed(prefix) if fits(entry.path)]


def _listed(prefix: str, delimiter: str | None = None) -> list[StoredObject]:
    """Return the objects whose paths begin with `prefix`, without folder markers."""
    with _file_errors(prefix, "listed"):
        place, bucket, name = store(prefix)
        return [e for e in place.entries(bucket, name, delimiter) if not e.path.endswith("/")]


def several(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply `function`, which reads or writes a file, to all items concurrently.

    After an error, running calls are awaited, and calls that have not started are cancelled. After
    Ctrl-C, running calls of `file_digest` and `copy` end early, but uploads do not.
    """
    futures = []
    try:
        for item in items:
            futures.append(_threads().submit(function, item))
        return [future.result() for future in futures]
    except KeyboardInterrupt:
        _interrupted.set()
        raise
    finally:
        wait([future for future in futures if not future.cancel()])
        if threading.current_thread() is threading.main_thread():  # only this thread gets Ctrl-C
            _interrupted.clear()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(32)


os.register_at_fork(after_in_child=_threads.cache_clear)


def remove(path: str) -> None:
    """Remove a file if it exists."""
    with suppress(MissingError), _file_errors(path, "removed"):
        if not is_remote(path):
            return Path(path).unlink()
        place, bucket, name = store(path)
        place.remove(bucket, name)


def remove_all(paths: Iterable[str]) -> None:
    """Remove all files in `paths` that exist."""
    several(remove, paths)


def clear(folder: str) -> None:
    """Remove the files in `folder`, including temporary files that killed processes left."""
    remove_all(join(folder, name) for name in names(folder))
    remove_temporary(folder)


def remove_temporary(folder: str, name: str = "*") -> None:
    """Remove temporary files that killed processes left in `folder` while writing `name`."""
    if not is_remote(folder) and Path(folder).is_dir():
        for path in Path(folder).glob(f".{name}.{'[0-9a-f]' * 7}f"):  # see `temporary_path`
            path.unlink(missing_ok=True)


def size(path: str) -> int:
    """Return the size of a file in bytes."""
    with _file_errors(path, "read"):
        if not is_remote(path):
            return Path(path).stat().st_size
        place, bucket, name = store(path)
        return place.size(bucket, name)


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file of any size, in hexadecimal."""
    sha256 = hashlib.sha256()
    with open_file(path) as stream, _file_errors(path, "read"):
        for chunk in _chunks(stream):
            sha256.update(chunk)
    return sha256.hexdigest()


def known_digest(path: str) -> str:
    """Return the `file_digest` of an input file. Read the file only if it may have changed."""
    if not exists(path):
        return file_digest(path)  # raises the error
    read = partial(file_digest, path)
    if is_remote(path):  # what `match` returns contains the store's checksum
        return kept_digest(path, lambda: ([match(path)], 0.0), read)
    return kept_digest(str(Path(path).absolute()), lambda: file_state(Path(path)), read)


def digest(data: bytes) -> str:
    """Return the checksum of a part file: XXH3, 128 bits, in hexadecimal."""
    return xxhash.xxh3_128_hexdigest(data)


def why(error: BaseException) -> str:
    """Return the message of a file system's error on one line."""
    message = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)
    return " ".join(str(message).split()) or type(error).__name__


@contextmanager
def _file_errors(path: str, what: str) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        kind = MissingError if is_missing(error) else UserError
        raise kind(f"{path}: cannot be {what} ({why(error)})") from error


def is_missing(error: BaseException) -> bool:
    """Whether an error from the system or a store's client means that a file does not exist."""
    amazon = getattr(error, "response", None) or {}
    code = amazon.get("Error", {}).get("Code") if isinstance(amazon, dict) else None
    google = getattr(error, "code", None) == 404
    return isinstance(error, FileNotFoundError) or google or code in ("NoSuchKey", "404")
