"""Local files and folders that are either complete or absent; locks; digests."""

import ctypes
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
from typing import Any, TypeVar

from paraloom.models.errors import UserError, in_one_line

T = TypeVar("T", bound=Hashable)

LOCKS = "PARALOOM_LOCKS"
"""Environment variable; `off` disables locks, for file systems without them."""

_LARGE = 1 << 20  # bytes; a smaller file is digested as fast as a cached digest is read
_SHA256 = re.compile(rb"[0-9a-f]{64}")
_SETTLED = 2.0  # seconds; two changes within this time may give a file the same timestamps

PACKED = re.compile(r"\.(gz|zst|bz2|xz)$")  # suffix of a compressed file

CARD = "README.md"
STAGE_RECORD = "_stage.json"
"""File name of a stage's record, in the stage's folder."""
OWN_CARD = "# Written by Paraloom"
"""Prefix of the second line in model cards that Paraloom writes into encoder folders."""


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds."""
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
    """Yield a temporary folder; it replaces `path` if the block succeeds.

    The temporary folder is in a locked hidden folder beside `path`. Leftovers of killed processes
    are removed first, or finished if the process was killed while it replaced `path`.
    """
    path = Path(path)
    with _writing(path):
        finish_killed(path)
        with _scratch(path) as scratch:
            new = scratch / path.name
            new.mkdir()
            yield new
            for file in new.rglob("*"):
                if file.is_file() and not file.is_symlink():
                    with suppress(OSError):  # some libraries make files private
                        file.chmod(file.stat().st_mode | new.stat().st_mode & 0o666)
                    _flush(file)
            if not _exchanged(new, path):
                if path.exists():
                    path.replace(_former(scratch, path))
                new.replace(path)


def _exchanged(new: Path, path: Path) -> bool:
    """Exchange two folders atomically; False if the system cannot."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE: Linux, not on every file system
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (here, os.fsencode(new), here, os.fsencode(path))
    return rename is not None and rename(*paths, exchange) == 0


def _former(scratch: Path, path: Path) -> Path:
    """Path of the former folder while two renames replace it."""
    return scratch / f"{path.name}.former"


def finish_killed(path: Path) -> None:
    """Finish or remove what `atomic_folder(path)` left behind when a process was killed."""
    for scratch in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
        if not scratch.name[-8:].isdigit():  # a user's folder that ends in a date
            with suppress(OSError), _locked_folder(scratch):
                _finish(scratch, path)


def _finish(scratch: Path, path: Path) -> None:
    if _former(scratch, path).exists() and not path.exists():
        (scratch / path.name).replace(path)
    shutil.rmtree(scratch)


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """Make a locked folder beside `path`, removed at the end. It is locked before it gets the name
    that `finish_killed` looks for."""
    folder = temporary_path(path)
    new = folder.with_name(f"{folder.name}-")
    new.mkdir()
    with ExitStack() as lock:
        with suppress(OSError):  # the file system has no locks
            lock.enter_context(_locked_folder(new))
        try:
            yield new.rename(folder)
        finally:
            with suppress(OSError):
                _finish(folder, path)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder exclusively; raises OSError if it is locked, or locks are off."""
    if os.environ.get(LOCKS) == "off":
        raise OSError("no locks")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def looked_up(path: str) -> str:
    """Explain in an error where a relative path was looked up; "" for other paths."""
    relative = "://" not in path and not Path(path).is_absolute()
    return f" (relative to the current folder, {Path.cwd()})" if relative else ""


def distinct_names(choices: Sequence[Sequence[T]]) -> list[T]:
    """For each item, its first name that no other item has; otherwise its last name.

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
    """Check that a file can be written, before doing the work for it."""
    with _writing(path):
        if path.is_dir():
            raise OSError("Is a directory")
        tempfile.TemporaryFile(dir=path.parent).close()


def temporary_path(path: Path) -> Path:
    """Make a hidden name beside `path` that no date can equal. `tempfile` would make the file with
    a mode of its own instead of the umask's."""
    return path.parent / f".{path.name}.{secrets.token_hex(4)[1:]}f"


def user_cache() -> Path:
    """Paraloom's cache folder for this user and machine, in `$XDG_CACHE_HOME`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom"


@contextmanager
def locked(path: Path, busy: str | None = None) -> Iterator[None]:
    """Create a file and lock it exclusively during the block.

    If another process has the lock, wait, or raise a UserError with the message `busy`.
    """
    with _writing(path):
        stream = path.open("ab")
    with stream:
        try:
            if os.environ.get(LOCKS) != "off":
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB if busy else fcntl.LOCK_EX)
        except BlockingIOError as error:
            raise UserError(str(busy)) from error
        except OSError as error:
            raise UserError(
                f"{path}: cannot be locked ({error.strerror}); if this file system has no locks, "
                f"set {LOCKS}=off, and let only one paraloom work there at a time"
            ) from error
        yield


def digest(path: Path | str, *, ignored: Container[str] = ()) -> str:
    """SHA-256 of a file, or of a folder's relative paths and files, in hexadecimal.

    It ignores hidden files and folders, such as caches; model cards and records that a run
    writes, which change with its results; and the relative paths in `ignored`. Digests of large
    files are cached, see `kept_digest`.
    """
    path = Path(path)
    if path.is_dir():
        total = hashlib.sha256()
        for file in sorted(path.rglob("*")):
            relative = file.relative_to(path)
            if not file.is_file() or any(part.startswith(".") for part in relative.parts):
                continue
            name = relative.as_posix()
            if (
                name == STAGE_RECORD
                or name in ignored
                or (file.name == CARD and _is_own_card(file))
            ):
                continue
            total.update(os.fsencode(name) + f"\0{digest(file)}\n".encode())
        return total.hexdigest()

    def read() -> str:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    with in_one_line(f"{path}: cannot be read"):
        large = path.stat().st_size >= _LARGE
        return (
            kept_digest(str(path.absolute()), lambda: file_state(path), read) if large else read()
        )


def kept_digest(
    place: str, state: Callable[[], tuple[list[Any], float]], compute: Callable[[], str]
) -> str:
    """SHA-256 of a file, which is read again only if it may have changed.

    Digests are stored in the user's cache, under a name made from the file's place and its state,
    which `state` returns as `file_state` does. A damaged cache file is ignored and rewritten.
    """
    started, (before, _) = time.time(), state()
    record = digest_record(place, before)
    with suppress(OSError):
        if _SHA256.fullmatch(known := record.read_bytes()):
            return known.decode()
    sha256 = compute()
    with suppress(OSError, UserError):  # without a cached digest, the next call reads the file
        after, changed = state()
        if after == before and changed < started - _SETTLED:
            with atomic_file(record) as temporary:
                temporary.write_text(sha256)
    return sha256


def digest_record(place: str, state: list[Any]) -> Path:
    """Path of a cached digest; the place is hashed, because it may contain a password."""
    return user_cache() / "digests" / hashlib.sha256(repr((place, state)).encode()).hexdigest()


def file_state(path: Path) -> tuple[list[Any], float]:
    """A value that differs if a file may have changed, and the time of the file's last change."""
    of = path.stat()
    state = [of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns]
    return state, max(of.st_mtime, of.st_ctime)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make the folder of `path`; turn the block's errors into one that names `path`.

    Special files are refused: a rename would replace /dev/null for every program.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OSError("it is not a regular file; choose another path")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except Exception as error:  # errors of Rust libraries are no OSError
        rust = "(os error " in str(error) and not isinstance(error, UserError)
        if not isinstance(error, OSError) and not rust:
            raise
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be written ({reason})") from error


def _is_own_card(path: Path) -> bool:
    start = f"---\n{OWN_CARD}".encode()
    with path.open("rb") as stream:
        return stream.read(len(start)) == start


def _flush(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
