"""Atomic writes of local files and folders, file locks, and digests."""

import ctypes
import errno
import fcntl
import glob
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from paraloom.models.errors import UserError, in_one_line

T = TypeVar("T", bound=Hashable)

LOCKS = "PARALOOM_LOCKS"
"""Environment variable. Set it to `off` if the file system does not support locks."""

_LARGE = 1 << 20  # bytes; computing the digest of a smaller file is as fast as reading the cache
_SHA256 = re.compile(rb"[0-9a-f]{64}")
_SETTLED = 2.0  # seconds; two changes within this time may give the same timestamps


PACKED = re.compile(r"\.(gz|zst|bz2|xz)$")  # suffix of a compressed file

CARD = "README.md"
STAGE_RECORD = "_stage.json"
"""Name of the record in a stage's folder."""
OWN_CARD = "# Written by Paraloom"
"""Start of the second line in the model cards that Paraloom writes into encoder folders."""


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename the file to `path` if the block succeeds."""
    path = Path(path)
    with _writing(path):
        temporary = temporary_path(path)
        try:
            yield temporary
            _flush(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, and replace `path` by it if the block succeeds."""
    path = Path(path)
    with _writing(path):
        if path.is_file():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        finish_killed(path)
        with _scratch(path) as scratch:
            new = scratch / path.name
            new.mkdir()
            yield new
            for file in new.rglob("*"):
                if file.is_file() and not file.is_symlink():
                    with suppress(OSError):  # let other users read the file, if the umask allows it
                        file.chmod(file.stat().st_mode | new.stat().st_mode & 0o666)
                    _flush(file)
            if not _exchanged(new, path):
                if path.exists():
                    path.replace(_former(scratch, path))
                new.replace(path)


def _exchanged(new: Path, path: Path) -> bool:
    """Exchange two folders atomically, and return whether this succeeded."""
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE on Linux
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (here, os.fsencode(new), here, os.fsencode(path))
    return rename is not None and rename(*paths, exchange) == 0


def _former(scratch: Path, path: Path) -> Path:
    return scratch / f"{path.name}.former"


def finish_killed(path: Path) -> None:
    """Remove temporary folders that killed calls of `atomic_folder(path)` left behind.

    If a killed call had already moved the old folder away, rename the new folder to `path` first.
    """
    for scratch in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
        if not scratch.name[-8:].isdigit():  # eight digits may be a date in a user's folder name
            with suppress(OSError), _locked_folder(scratch):
                _finish(scratch, path)


def _finish(scratch: Path, path: Path) -> None:
    if _former(scratch, path).exists() and not path.exists():
        (scratch / path.name).replace(path)
    shutil.rmtree(scratch)


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """Create a locked folder beside `path`, and remove the folder after the block."""
    folder = temporary_path(path)
    # Until the folder is locked, it has a name that `finish_killed` does not find.
    new = folder.with_name(f"{folder.name}-")
    new.mkdir()
    with ExitStack() as lock:
        with suppress(OSError):  # some file systems do not support locks
            lock.enter_context(_locked_folder(new))
        try:
            yield new.rename(folder)
        finally:
            with suppress(OSError):
                _finish(folder, path)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder. Raise an OSError if the folder is already locked or locks are disabled."""
    if os.environ.get(LOCKS) == "off":
        raise OSError("no locks")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def looked_up(path: str) -> str:
    """Return a note that names the current folder, or "" if `path` is absolute or an address."""
    relative = "://" not in path and not Path(path).is_absolute()
    return f" (relative to the current folder, {Path.cwd()})" if relative else ""


def own_place(file: Path) -> Path:
    """Make a path absolute. Resolve links to folders, but keep a link at `file` itself."""
    return file.parent.resolve() / file.name


def distinct_names(choices: Sequence[Sequence[T]]) -> list[T]:
    """Choose a name for each item. `choices` contains the names of each item, best names first.

    An item gets its first name that distinguishes it from the other items, or its last name.

    >>> distinct_names([("dev", "a/dev"), ("test", "a/test"), ("test", "b/test")])
    ['dev', 'a/test', 'b/test']
    """
    at = [0] * len(choices)
    while True:
        names = [of[i] for of, i in zip(choices, at, strict=True)]
        counts = Counter(names)
        more = [k for k, of in enumerate(choices) if counts[names[k]] > 1 and at[k] + 1 < len(of)]
        if not more:
            return names
        for k in more:
            at[k] += 1


def check_writable(path: Path) -> None:
    """Raise a UserError if a file cannot be written. Call this function before long work."""
    with _writing(path):
        if path.is_dir():
            raise OSError("Is a directory")
        tempfile.TemporaryFile(dir=path.parent).close()


def temporary_path(path: Path) -> Path:
    """Return a random hidden path beside `path`.

    The module tempfile is not used, because its files ignore the umask.
    """
    return path.parent / f".{path.name}.{secrets.token_hex(4)[1:]}f"


def user_cache() -> Path:
    """Return Paraloom's folder in `$XDG_CACHE_HOME` or `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom"


@contextmanager
def locked(path: Path, busy: str | None = None) -> Iterator[None]:
    """Create a file and lock it exclusively during the block.

    If another process has the lock, raise a UserError with the message `busy`. If `busy` is None,
    wait for the lock instead.
    """
    with _writing(path):
        stream = path.open("a+b")
    with stream:
        try:
            if os.environ.get(LOCKS) != "off":
                _lock(stream, wait=busy is None)
        except BlockingIOError as error:
            raise UserError(str(busy)) from error
        except OSError as error:
            raise UserError(
                f"{path}: cannot be locked ({error.strerror}); if this file system has no locks, "
                f"set {LOCKS}=off, and run only one paraloom command there at a time"
            ) from error
        yield


def _lock(stream: IO[bytes], *, wait: bool) -> None:
    """Lock a file exclusively. If another process has a lock, wait or raise a BlockingIOError."""
    for _ in range(500):
        try:
            return fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            # If the other lock is exclusive, the next line raises a BlockingIOError. A shared lock
            # is from `paraloom status`, which releases it soon, so wait up to 5 seconds.
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            time.sleep(0.01)
    raise BlockingIOError


def digest(path: Path | str, *, ignored: Container[str] = ()) -> str:
    """Return the hexadecimal SHA-256 of a file, or of the relative paths and files in a folder.

    In a folder, skip hidden paths, the stage record, the model cards that Paraloom wrote, compiled
    Python modules, and the relative paths in `ignored`. Digests of large files are cached.
    """
    path = Path(path)
    if path.is_dir():
        total = hashlib.sha256()
        for file in sorted(path.rglob("*")):
            relative = file.relative_to(path)
            parts = relative.parts
            if not file.is_file() or any(of[0] == "." or of == "__pycache__" for of in parts):
                continue
            name = relative.as_posix()
            if name == STAGE_RECORD or name in ignored or _is_own_card(file):
                continue
            total.update(os.fsencode(name) + f"\0{digest(file)}\n".encode())
        return total.hexdigest()

    def read() -> str:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    with in_one_line(f"{path}: cannot be read"):
        if path.stat().st_size < _LARGE:
            return read()
        return kept_digest(str(path.absolute()), lambda: file_state(path), read)


def kept_digest(
    place: str, state: Callable[[], tuple[list[Any], float]], compute: Callable[[], str]
) -> str:
    """Return the cached SHA-256 of a file, or compute it if none is cached for its current state.

    Args:
        place: the absolute path or address of the file.
        state: returns the values of `file_state` for the file.
        compute: reads the file and returns its SHA-256.
    """
    started, (before, _) = time.time(), state()
    record = digest_record(place, before)
    with suppress(OSError):
        if _SHA256.fullmatch(known := record.read_bytes()):
            return known.decode()
    sha256 = compute()
    with suppress(OSError, UserError):  # if caching fails, the next call reads the file again
        after, changed = state()
        if after == before and changed < started - _SETTLED:
            with atomic_file(record) as temporary:
                temporary.write_text(sha256)
    return sha256


def digest_record(place: str, state: list[Any]) -> Path:
    """Return the path of a cached digest. `place` is hashed, because it may contain a password."""
    return user_cache() / "digests" / hashlib.sha256(repr((place, state)).encode()).hexdigest()


def file_state(path: Path) -> tuple[list[Any], float]:
    """Return metadata that differ after a file is changed, and the time of the last change."""
    of = path.stat()
    state = [of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns]
    return state, max(of.st_mtime, of.st_ctime)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Create the folder of `path`, and convert write errors in the block to a UserError."""
    try:
        # Refuse devices such as /dev/null, because a rename would replace the device.
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OSError("it is not a regular file; choose another path")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except Exception as error:  # Rust libraries do not raise an OSError
        rust = "(os error " in str(error) and not isinstance(error, UserError)
        if not isinstance(error, OSError) and not rust:
            raise
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be written ({reason})") from error


def _is_own_card(path: Path) -> bool:
    return path.name == CARD and path.read_bytes().startswith(f"---\n{OWN_CARD}".encode())


def _flush(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
