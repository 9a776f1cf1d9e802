"""Check access to object stores, and make local copies of remote files and folders.

Libraries can open models and vectors only as local files. For a run in an object store, a trained
model is therefore written to a local folder, uploaded, and read from a local copy.
"""

import hashlib
import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import content_key
from paraloom.beam_jobs.storage.clients import StoredObject, store
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD, locked, user_cache

_TIMEOUT = 40.0  # seconds; stores usually answer within one second


def check_access(path: str) -> None:
    """Check that the bucket of a remote path exists and can be read, before work begins."""
    errors: list[BaseException] = []

    def check() -> None:
        try:
            place, bucket, _ = store(path)
            next(place.entries(bucket, "", None), None)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=check, daemon=True)  # clients may retry for minutes
    thread.start()
    thread.join(_TIMEOUT)
    if thread.is_alive():
        raise UserError(f"{path}: no answer from the object store in {_TIMEOUT:.0f} seconds")
    for error in errors:
        if isinstance(error, UserError):
            raise error
        missing = storage.is_missing(error)
        why = "the bucket does not exist" if missing else storage.why(error)
        raise UserError(f"{path}: {why}") from error


def exists(path: str) -> bool:
    """Whether a local path exists, or a remote path is a file or a folder with files."""
    return bool(_listing(path)) if storage.is_remote(path) else Path(path).exists()


def localise(path: str) -> str:
    """Return a local path unchanged; copy a remote file or folder, and return the copy's path.

    The copy is reused until the name or version of an object changes. Raise `MissingError` if the
    path does not exist.
    """
    if not storage.is_remote(path):
        return path
    found = _listing(path)
    if not found:
        raise storage.MissingError(f"{path}: no such file or folder")
    copy = _copy_path(path, found)
    if not _is_whole(copy, path, found):
        with locked(copy.with_name(f".{copy.name}.lock")):
            if not _is_whole(copy, path, found):  # another process may have made the copy
                _fetch(path, found, copy)
    return str(copy)


def publish(folder: Path, path: str) -> None:
    """Upload a local folder to a remote `path`, and remove other files there. Then move the folder
    to the place of its local copy. If `path` is local, do nothing."""
    if not storage.is_remote(path):
        return
    files = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and not any(part.startswith(".") for part in name.split("/")):
            files[storage.join(path, name)] = str(file)

    storage.several(lambda target: storage.copy(files[target], target), files)
    storage.remove_all(entry.path for entry in _listing(path) if entry.path not in files)
    copy = _copy_path(path, _listing(path))
    with suppress(OSError):  # after an error, `localise` fetches the folder again
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists():  # on S3, an earlier model with equal content has this path
            shutil.move(folder, copy)
    shutil.rmtree(folder, ignore_errors=True)


def local_workdir(run: str) -> Path:
    """Return a local run's folder. For a remote run, return a folder for files that stay local."""
    if not storage.is_remote(run):
        return Path(run)
    run = run.rstrip("/")
    name = re.sub(r"[^\w.-]", "_", run.rsplit("/", 1)[-1])
    return user_cache() / "runs" / f"{name}-{hashlib.sha256(run.encode()).hexdigest()[:12]}"


def _listing(path: str) -> list[StoredObject]:
    """Return the object of a file, or the objects in a folder, except the stage's record."""
    path = path.rstrip("/")
    found = storage.match(f"{path}/**") or storage.match(path)
    record = storage.join(path, STAGE_RECORD)
    return sorted((e for e in found if e.path != record), key=lambda entry: entry.path)


def _copy_path(path: str, found: Sequence[StoredObject]) -> Path:
    """Path of the local copy. The copy keeps its remote name, which some libraries read."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return user_cache() / "copies" / content_key(found)[:24] / name


def _place(entry: StoredObject, path: str, copy: Path) -> Path:
    return copy / entry.path.removeprefix(path.rstrip("/")).lstrip("/")


def _is_whole(copy: Path, path: str, found: Sequence[StoredObject]) -> bool:
    with suppress(OSError):
        return all(_place(of, path, copy).stat().st_size == of.size for of in found)
    return False


def _fetch(path: str, found: Sequence[StoredObject], copy: Path) -> None:
    for old in copy.parent.iterdir():  # damaged copies, and files of killed processes
        if old.is_dir():
            shutil.rmtree(old)
        elif old.suffix != ".lock":
            old.unlink()
    with tempfile.TemporaryDirectory(dir=copy.parent) as scratch:
        whole = Path(scratch, copy.name)

        def fetch(entry: StoredObject) -> None:
            target = _place(entry, path, whole)
            storage.copy(entry.path, str(target))
            if target.stat().st_size != entry.size:
                raise UserError(f"{entry.path}: it changed while it was read; try again")

        storage.several(fetch, found)
        whole.rename(copy)
