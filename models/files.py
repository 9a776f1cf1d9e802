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
from collections import Counter
from collections.abc import Container, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from paraloom.models.errors import UserError, in_one_line

T = TypeVar("T", bound=Hashable)

LOCKS = "PARALOOM_LOCKS"
"""Environment variable: `off` takes no locks, for file systems that have none."""

PACKED = re.compile(r"\.(gz|zst|bz2|xz)$")
"""The suffix of a compressed file."""

CARD = "README.md"
STAGE_RECORD = "_stage.json"
"""What a run records of a stage, in the stage's folder."""
OWN_CARD = "# Written by Paraloom"
"""How the second line of the model cards begins that Paraloom writes into encoder folders."""


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds.

    If the block is killed or fails, the former content of `path` stays.
    """
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

    It is in a hidden folder beside `path`, which is locked. What a killed process left there is
    removed first; if it was killed while it replaced `path`, that is finished.
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
                    with suppress(OSError):  # some libraries let nobody else read their files
                        file.chmod(file.stat().st_mode | new.stat().st_mode & 0o666)
                    _flush(file)
            if not _exchanged(new, path):
                if path.exists():
                    path.replace(_former(scratch, path))
                new.replace(path)


def _exchanged(new: Path, path: Path) -> bool:
    """Exchange two folders at once, so that no moment is without; False where that cannot be."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE: of Linux, not on every file system
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (here, os.fsencode(new), here, os.fsencode(path))
    return rename is not None and rename(*paths, exchange) == 0


def _former(scratch: Path, path: Path) -> Path:
    """Where what stood at `path` is while two renames replace it."""
    return scratch / f"{path.name}.former"


def finish_killed(path: Path) -> None:
    """Finish or remove what killed processes left of `atomic_folder(path)`; nothing that a living
    process is at work on."""
    for scratch in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
        if not scratch.name[-8:].isdigit():  # a date, of a user's folder
            with suppress(OSError), _locked_folder(scratch):
                _finish(scratch, path)


def _finish(scratch: Path, path: Path) -> None:
    if _former(scratch, path).exists() and not path.exists():
        (scratch / path.name).replace(path)
    shutil.rmtree(scratch)


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """A locked folder beside `path`, which is removed at the end; it is locked before it has the
    name by which `finish_killed` finds it."""
    folder = temporary_path(path)
    new = folder.with_name(f"{folder.name}-")
    new.mkdir()
    with ExitStack() as lock:
        with suppress(OSError):  # a file system without locks
            lock.enter_context(_locked_folder(new))
        try:
            yield new.rename(folder)
        finally:
            with suppress(OSError):
                _finish(folder, path)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for this process alone; OSError if it is locked, or locks are off."""
    if os.environ.get(LOCKS) == "off":
        raise OSError("no locks")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def looked_up(path: str) -> str:
    """Where a relative path that leads nowhere was looked up, for an error; "" of other paths."""
    relative = "://" not in path and not Path(path).is_absolute()
    return f" (relative to the current folder, {Path.cwd()})" if relative else ""


def distinct_names(choices: Sequence[Sequence[T]]) -> list[T]:
    """For each of some things, the first of its names that no other has; else its last.

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
    """Check that a file can be written, before the work for it is done."""
    with _writing(path):
        if path.is_dir():
            raise OSError("Is a directory")
        tempfile.TemporaryFile(dir=path.parent).close()


def temporary_path(path: Path) -> Path:
    """A new hidden name beside `path`, which is no date; `tempfile` would not let the umask decide
    on the mode."""
    return path.parent / f".{path.name}.{secrets.token_hex(4)[1:]}f"


def user_cache() -> Path:
    """The folder of what Paraloom keeps for this user, on this machine: `$XDG_CACHE_HOME`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom"


@contextmanager
def locked(path: Path, busy: str | None = None) -> Iterator[None]:
    """Lock a file, which is made, for this process alone as long as the block runs.

    Waits while another process has the lock, or with `busy` ends with this message.
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

    Hidden files and folders (names that begin with a dot) are ignored: they hold caches. So are
    the model cards and records that a run writes: they change with its results, the models do not.
    `ignored` has the relative paths of further files to ignore.
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
    with in_one_line(f"{path}: cannot be read"), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make the folder of `path`; turn errors of the system in the block into one that names it.

    A rename would take /dev/null from every program, so nothing special is replaced.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OSError("it is not a regular file; choose another path")
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except Exception as error:  # libraries in Rust have classes of their own
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
