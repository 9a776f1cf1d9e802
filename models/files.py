"""Local files and folders that are either complete or absent; digests."""

import errno
import fcntl
import gzip
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import IO, TextIO

from paraloom.models.errors import UserError

LOCKS = "PARALOOM_LOCKS"
"""Environment variable: `off` takes no locks, for file systems that have none."""

CARD = "README.md"
_RUST_ERROR = re.compile(r"\(os error (\d+)\)")
OWN_CARD = "# Written by Paraloom"
"""How the second line of the model cards begins that Paraloom writes into encoder folders."""


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` if the block succeeds.

    If the block is killed or fails, the former content of `path` stays. The file has the mode of
    the one that it replaces, or that of any new file.
    """
    path = Path(path)
    with _writing_errors(path):
        _check_replaceable(path)
        temporary = temporary_path(path)
        mode = stat.S_IMODE(path.stat().st_mode) if path.is_file() else None
        temporary.touch(0o666 if mode is None else 0o600, exist_ok=False)
        try:
            if mode is None:
                mode = stat.S_IMODE(temporary.stat().st_mode)  # what the umask leaves
            yield temporary
            _flush(temporary)
            _chmod(temporary, mode & 0o777)  # a library may have made the file anew
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def user_cache() -> Path:
    """The folder of what Paraloom keeps for this user, on this machine: `$XDG_CACHE_HOME`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom"


def _chmod(path: Path, mode: int) -> None:
    """Change the mode, if the file system has modes."""
    with suppress(OSError):
        path.chmod(mode)


def check_writable(path: Path) -> None:
    """Check that a file can be written, before the work for it is done."""
    with _writing_errors(path):
        _check_replaceable(path)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        Path(name).unlink()


def temporary_path(path: Path) -> Path:
    """A new hidden name beside `path`; `tempfile` would not let the umask decide on the mode."""
    return path.parent / f".{path.name}.{secrets.token_hex(4)}"


def _check_replaceable(path: Path) -> None:
    """Check that nothing special is at `path`: a rename would take /dev/null from every program."""
    special = path.exists() and not path.is_file() and not path.is_dir()
    if special or path.absolute().parent == Path("/dev"):  # /dev/stdout is a link, to any file
        raise UserError(
            f"{path}: cannot be written (it is not a regular file); choose another path"
        )


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it replaces `path` if the block succeeds.

    The folder has the mode of the one that it replaces, or that of any new folder.
    """
    path = Path(path)
    with _writing_errors(path):
        _check_replaceable(path)
        temporary = temporary_path(path)
        mode = stat.S_IMODE(path.stat().st_mode) if path.is_dir() else None
        temporary.mkdir(0o777)
        try:
            new = stat.S_IMODE(temporary.stat().st_mode)  # what the umask leaves
            _chmod(temporary, new & ~0o077)
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    if not file.is_symlink():  # some libraries let nobody else read their files
                        _chmod(file, stat.S_IMODE(file.stat().st_mode) | (new & 0o666))
                    _flush(file)
            _chmod(temporary, new if mode is None else mode)
            if path.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
                path.replace(old / path.name)
                temporary.replace(path)
                shutil.rmtree(old)
            else:
                temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def locked_folder(folder: Path, name: str, busy: str) -> Iterator[None]:
    """Make a folder, and keep a second process out of it as long as the block runs.

    Args:
        name: of the folder in messages.
        busy: the message if another process is there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{name}: cannot be written ({error.strerror or error})") from error
    with open_lock(folder / ".lock") as stream:
        try:
            lock(stream, folder / ".lock", wait=False)
        except BlockingIOError as error:
            raise UserError(busy) from error
        yield


def check_inside(folder: Path, top: Path) -> None:
    """Check that `folder` is no link that leads out of `top`, which may itself be a link."""
    leads = folder.is_symlink() and folder.is_dir()
    if leads and not folder.resolve().is_relative_to(top.resolve()):
        raise UserError(
            f"{folder}: this link leads out of {top}, and files there would be changed or removed; "
            f"put a folder in its place (a link may lead to {top} as a whole)"
        )


def open_lock(path: Path) -> IO[bytes]:
    """Open a file for locking, and make it if it is not there; what it holds stays."""
    with _writing_errors(path):
        return os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW), "rb")


def lock(stream: IO[bytes], path: Path, *, wait: bool = True) -> None:
    """Lock the file of `open_lock` for this process alone, until it is closed.

    Raises:
        BlockingIOError: another process has locked it; only without `wait`.
        UserError: its file system has no locks; names `path`.
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


def open_log(path: Path) -> TextIO:
    """Open a text file to which lines are appended, and make it if it is not there."""
    with _writing_errors(path):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        return os.fdopen(open_regular(path, flags), "a", encoding="utf-8")


def open_regular(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """The descriptor of a file that is opened as by `os.open`, with its flags.

    Folders from elsewhere may hold anything: a pipe would never open, a device never end.

    Raises:
        OSError: it is no regular file, or, with `O_NOFOLLOW`, a link.
    """
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
            raise OSError(errno.ELOOP, "it is a symbolic link") from error
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is not a regular file")


def check_regular(path: Path | str) -> None:
    """Check a file that a library opens, which would wait for a pipe; raises as `open_regular`."""
    os.close(open_regular(path))


def read_regular(path: Path | str) -> bytes:
    """The content of a regular file; raises as `open_regular`."""
    with FileIO(open_regular(path)) as file:  # a buffer would take as long as a small file
        return file.readall()


@contextmanager
def reading_errors(path: Path | str) -> Iterator[None]:
    """Turn errors of reading in the block into a `UserError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


@contextmanager
def _writing_errors(path: Path) -> Iterator[None]:
    """Make the folder of `path`; turn errors of the block into a `UserError` that names `path`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    except Exception as error:  # libraries in Rust have classes of their own for it
        if found := _RUST_ERROR.search(str(error)):
            raise UserError(f"{path}: cannot be written ({os.strerror(int(found[1]))})") from error
        raise


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzip file for reading; its first bytes tell which."""
    try:
        with path.open("rb") as raw:
            zipped = raw.peek(2)[:2] == b"\x1f\x8b"
            yield gzip.GzipFile(fileobj=raw) if zipped else raw  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: damaged gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


def digest(path: Path | str, *, ignored: Container[str] = ()) -> str:
    """SHA-256 of a file, or of a folder's relative paths and files, in hexadecimal.

    Hidden files and folders (names that begin with a dot) are ignored: they hold caches. So are
    the model cards that Paraloom writes: they change with the results of a run, the models do not.

    Args:
        ignored: relative paths in the folder of other files to ignore.
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
    with reading_errors(path), os.fdopen(open_regular(path), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_own_card(path: Path) -> bool:
    start = f"---\n{OWN_CARD}".encode()
    with path.open("rb") as stream:
        return stream.read(len(start)) == start


def _flush(path: Path) -> None:
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
