"""Object storage: whether it answers, and copies of it on this machine.

Models, vectors and what is trained are folders of files that libraries open by themselves. Where a
run lies in an object store they are made in a folder of this machine and uploaded, and read from
copies. Whether an uploaded folder is whole is known by its digest, not by what is in it: it stands
in the manifest, which is written last.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from beam_jobs.io import storage
from beam_jobs.io.shards import content_key
from models.errors import UserError

_ANSWERS_WITHIN = 40.0  # seconds; an object store answers in one
_NEEDS = {
    "s3": ("boto3", "s3"),
    "gs": ("Google's client library", "gcp"),
}


def connect(options: PipelineOptions) -> None:
    """Reach object stores with Beam's options from here on (`--s3_endpoint_url` and others).

    A pipeline does the same when it is built, and in its workers.
    """
    FileSystems.set_options(options)


def ask(path: str, options: PipelineOptions) -> None:
    """See that the bucket of a remote path is there and lets us in, before work begins.

    Raises:
        UserError: it is not, it does not within 40 seconds, or the library for it is missing.
    """
    said: list[BaseException] = []

    def listed() -> None:
        try:
            _list_bucket(path, options)
        except BaseException as error:
            said.append(error)

    asking = threading.Thread(target=listed, daemon=True)  # Beam itself would try for 10 minutes
    asking.start()
    asking.join(_ANSWERS_WITHIN)
    if asking.is_alive():
        raise UserError(f"{path}: no answer from the object store in {_ANSWERS_WITHIN:.0f} seconds")
    for error in said:
        if type(error).__name__ == "NoCredentialsError":
            raise UserError(
                f"{path}: no credentials for S3; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or AWS_PROFILE"
            ) from error
        raise error if isinstance(error, UserError) else UserError(f"{path}: {storage.why(error)}")


def _list_bucket(path: str, options: PipelineOptions) -> None:
    scheme, _, rest = path.partition("://")
    bucket = rest.split("/")[0]
    try:
        FileSystems.get_filesystem(path)
        if scheme == "s3":
            from apache_beam.io.aws.clients.s3.boto3_client import Client, boto3

            if boto3 is None:
                raise ImportError("boto3")
    except (ValueError, ImportError) as error:
        if scheme not in _NEEDS:
            raise UserError(f"{path}: Beam knows no file system {scheme}://") from error
        what, extra = _NEEDS[scheme]
        raise UserError(
            f"{path}: {scheme}:// needs {what}: pip install 'paraloom[{extra}]'"
        ) from error
    if scheme == "s3":  # Beam's own listing takes a missing bucket for an empty one
        Client(options).client.list_objects_v2(Bucket=bucket, MaxKeys=1)
    else:
        FileSystems.exists(f"{scheme}://{bucket}/manifest.json")


def there(path: str) -> bool:
    """Whether a file, or a folder with files, is at `path`, local or not."""
    return bool(_listing(path)) if storage.is_remote(path) else Path(path).exists()


def local(path: str) -> str:
    """`path` itself where it is local; else a copy of the file or folder on this machine.

    The copy is made once, by one process, for as long as names, sizes and times stay the same.

    Raises:
        MissingError: there is nothing at `path`.
        UserError: it cannot be read, or there is no room for the copy.
    """
    if not storage.is_remote(path):
        return path
    found = _listing(path)
    if not found:
        raise storage.MissingError(f"{path}: no such file or folder")
    place = _copy_of(path, found)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.with_name(f".{place.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():  # another process may have been quicker
                _fetch(path, found, place)
    return str(place)


def publish(folder: Path, path: str) -> None:
    """Bring a folder that was made on this machine to `path`, if that is in an object store.

    The remote folder then holds its files and no others, and it is the copy of the remote one.
    """
    if not storage.is_remote(path):
        return
    kept = set()
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and not any(part.startswith(".") for part in name.split("/")):
            kept.add(storage.join(path, name))
            with file.open("rb") as source:
                storage.put(source, storage.join(path, name))
    for entry in _listing(path):
        if entry.path not in kept:
            storage.remove(entry.path)
    place = _copy_of(path, _listing(path))
    with suppress(OSError):  # else it is fetched when it is needed
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, place)
    shutil.rmtree(folder, ignore_errors=True)


def local_workdir(run: str) -> Path:
    """Where this machine keeps what belongs to a run and is not, or not yet, to be uploaded."""
    if not storage.is_remote(run):
        return Path(run)
    run = run.rstrip("/")
    name = re.sub(r"[^\w.-]", "_", run.rsplit("/", 1)[-1])
    return _cache() / "runs" / f"{name}-{hashlib.sha256(run.encode()).hexdigest()[:12]}"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom"


def _listing(path: str) -> list[FileMetadata]:
    """The objects of a remote folder, or the one object of that name."""
    path = path.rstrip("/")
    found = storage.match(f"{path}/**") or storage.match(path)
    files = (entry for entry in found if not entry.path.endswith("/"))  # a console's empty folders
    return sorted(files, key=lambda entry: entry.path)


def _copy_of(path: str, found: Sequence[FileMetadata]) -> Path:
    """Where the copy of a listing is: its last name is kept, since libraries look at it."""
    path = path.rstrip("/")
    version = [(e.path, e.size_in_bytes, e.last_updated_in_seconds) for e in found]
    return _cache() / "copies" / content_key(version)[:24] / path.rsplit("/", 1)[-1]


def _fetch(path: str, found: Sequence[FileMetadata], place: Path) -> None:
    path = path.rstrip("/")
    try:
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            whole = Path(scratch, place.name)
            for entry in found:
                target = whole / entry.path.removeprefix(path).lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                with storage.open_file(entry.path) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
                if target.stat().st_size != entry.size_in_bytes:
                    raise UserError(f"{entry.path}: it changed while it was read; try again")
            whole.rename(place)
    except OSError as error:
        raise UserError(f"{place}: cannot be written ({storage.why(error)})") from error
