"""Local files and folders that are either complete or absent; locks; digests."""

import errno
import fcntl
import gzip
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from paraloom.models.errors import UserError, in_one_line

LOCKS = "PARALOOM_LOCKS"
"""Environment variable: `off` takes no locks, for file systems that have none."""

CARD = "README.md"
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
    """Yield a temporary folder beside `path`; it replaces `path` if the block succeeds."""
    path = Path(path)
    with _writing(path):
        temporary = temporary_path(path)
        temporary.mkdir()
        try:
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file() and not file.is_symlink():
                    with suppress(OSError):  # some libraries let nobody else read their files
                        file.chmod(file.stat().st_mode | temporary.stat().st_mode & 0o666)
                    _flush(file)
            if path.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
                path.replace(old / path.name)
                temporary.replace(path)
                shutil.rmtree(old)
            else:
                temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def looked_up(path: str) -> str:
    """Where a relative path that leads nowhere was looked up, for an error; "" of other paths."""
    relative = "://" not in path and not Path(path).is_absolute()
    return f" (relative to the current folder, {Path.cwd()})" if relative else ""


def check_writable(path: Path) -> None:
    """Check that a file can be written, before the work for it is done."""
    with _writing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        tempfile.TemporaryFile(dir=path.parent).close()


def temporary_path(path: Path) -> Path:
    """A new hidden name beside `path`; `tempfile` would not let the umask decide on the mode."""
    return path.parent / f".{path.name}.{secrets.token_hex(4)}"


def user_cache() -> Path:
    """The folder of what Paraloom keeps for this user, on this machine: `$XDG_CACHE_HOME`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom"


@contextmanager
def locked_folder(folder: Path, name: str, busy: str) -> Iterator[None]:
    """Make a folder, and keep a second process out of it as long as the block runs.

    Messages call the folder `name`; `busy` is the message if another process is there.
    """
    with in_one_line(f"{name}: cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
    with open_lock(folder / ".lock") as stream:
        try:
            lock(stream, folder / ".lock", wait=False)
        except BlockingIOError as error:
            raise UserError(busy) from error
        yield


def open_lock(path: Path) -> IO[bytes]:
    """Open a file for locking, and make it if it is not there; what it holds stays."""
    with _writing(path):
        return path.open("ab")


def lock(stream: IO[bytes], path: Path, *, wait: bool = True) -> None:
    """Lock the file of `open_lock` for this process alone, until it is closed.

    Without `wait`, a BlockingIOError says that another process has locked it.
    """
    if os.environ.get(LOCKS) == "off":
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        raise UserError(
            f"{path}: cannot be locked ({error.strerror or error}); if this file system has no "
            f"locks, set {LOCKS}=off, and let only one paraloom work there at a time"
        ) from error


GZIP = b"\x1f\x8b"
"""What gzip files begin with."""

_PACKED = {
    "zstd": rb"\x28\xb5\x2f\xfd",
    "xz": rb"\xfd7zXZ\x00",
    "bzip2": rb"BZh[1-9]1AY&SY",
    "zip": rb"PK\x03\x04",
}


def packed(head: bytes) -> str:
    """The compression, other than gzip, of a file that begins so; empty if it has none."""
    found = (kind for kind, magic in _PACKED.items() if re.match(magic, head, re.DOTALL))
    return next(found, "")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file for reading; its first bytes tell which."""
    try:
        with path.open("rb") as raw:
            head = raw.peek(10)
            if packed(head):
                raise UserError(f"{path}: is packed; give it plain or as gzip")
            zipped = head.startswith(GZIP)
            yield gzip.GzipFile(fileobj=raw) if zipped else raw  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: damaged gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


def digest(path: Path | str, *, ignored: Container[str] = ()) -> str:
    """SHA-256 of a file, or of a folder's relative paths and files, in hexadecimal.

    Hidden files and folders (names that begin with a dot) are ignored: they hold caches. So are
    the model cards that Paraloom writes: they change with the results of a run, the models do not.
    `ignored` has the relative paths of further files to ignore.
    """
    path = Path(path)
    if path.is_dir():
        total = hashlib.sha256()
        for file in sorted(path.rglob("*")):
            relative = file.relative_to(path)
            if not file.is_file() or any(part.startswith(".") for part in relative.parts):
                continue
            if relative.as_posix() in ignored or (file.name == CARD and _is_own_card(file)):
                continue
            total.update(os.fsencode(relative.as_posix()) + f"\0{digest(file)}\n".encode())
        return total.hexdigest()
    with in_one_line(f"{path}: cannot be read"), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make the folder of `path`; turn errors of the block into a `UserError` that names `path`.

    A rename would take /dev/null from every program, so nothing special is replaced.
    """
    special = path.exists() and not path.is_file() and not path.is_dir()
    if special or path.absolute().parent == Path("/dev"):  # /dev/stdout is a link, to any file
        raise UserError(
            f"{path}: cannot be written (it is not a regular file); choose another path"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    except Exception as error:  # libraries in Rust have classes of their own for it
        if isinstance(error, UserError) or "(os error " not in str(error):
            raise
        raise UserError(f"{path}: cannot be written ({error})") from error


def _is_own_card(path: Path) -> bool:
    start = f"---\n{OWN_CARD}".encode()
    with path.open("rb") as stream:
        return stream.read(len(start)) == start


def _flush(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
