"""Clients of object stores, which read, write or remove an object in one request.

Beam's own file systems are slower. They create a client for every operation, and send two to six
requests per object. This module reuses its clients until Beam's options change.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from paraloom.models.errors import UserError

# Prevent Google's library from requesting the bucket's metadata for OpenTelemetry traces.
os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")


class StoredObject(NamedTuple):
    """An object in a listing. `version` changes when the object's content changes."""

    path: str
    size: int
    version: str


class _S3:
    """Amazon S3, and stores with the same interface."""

    def __init__(self, options: Any) -> None:
        from apache_beam.io.aws.clients.s3 import boto3_client

        self._client = boto3_client.Client(options).client

    def read(self, bucket: str, name: str, start: int = 0, end: int | None = None) -> bytes:
        part = {"Range": f"bytes={start}-{end - 1}"} if end is not None else {}
        found = self._client.get_object(Bucket=bucket, Key=name, **part)
        return cast(bytes, found["Body"].read())

    def write(self, bucket: str, name: str, data: bytes) -> None:
        self._client.put_object(Bucket=bucket, Key=name, Body=data)

    def send(self, bucket: str, name: str, file: Path) -> None:
        """Upload a file of any size; the object appears when it is complete."""
        self._client.upload_file(str(file), bucket, name)

    def remove(self, bucket: str, name: str) -> None:
        self._client.delete_object(Bucket=bucket, Key=name)

    def size(self, bucket: str, name: str) -> int:
        return int(self._client.head_object(Bucket=bucket, Key=name)["ContentLength"])

    def entries(self, bucket: str, prefix: str, delimiter: str | None) -> Iterator[StoredObject]:
        """Yield objects whose names begin with `prefix` and contain no `delimiter` after it."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, Delimiter=delimiter or ""
        )
        for page in pages:
            for found in page.get("Contents", ()):
                yield StoredObject(f"s3://{bucket}/{found['Key']}", found["Size"], found["ETag"])


class _Google:
    def __init__(self, options: Any) -> None:
        import google.auth
        from apache_beam.io.gcp.gcsio import create_storage_client
        from apache_beam.options.pipeline_options import GoogleCloudOptions

        anonymous = options.view_as(GoogleCloudOptions).no_auth
        if not anonymous:
            # This call raises an error if there are no credentials. Beam would raise no error: it
            # would wait for 20 seconds and then continue without credentials.
            google.auth.default()
        self._client = create_storage_client(options, use_credentials=not anonymous)

    def _object(self, bucket: str, name: str) -> Any:
        return self._client.bucket(bucket).blob(name)

    def read(self, bucket: str, name: str, start: int = 0, end: int | None = None) -> bytes:
        part = {"start": start, "end": end - 1} if end is not None else {}
        data = self._object(bucket, name).download_as_bytes(raw_download=True, **part)
        return cast(bytes, data)

    def write(self, bucket: str, name: str, data: bytes) -> None:
        self._object(bucket, name).upload_from_string(data, "application/octet-stream")

    def send(self, bucket: str, name: str, file: Path) -> None:
        self._object(bucket, name).upload_from_filename(str(file))

    def remove(self, bucket: str, name: str) -> None:
        self._object(bucket, name).delete()

    def size(self, bucket: str, name: str) -> int:
        found = self._object(bucket, name)
        found.reload()
        return int(found.size)

    def entries(self, bucket: str, prefix: str, delimiter: str | None) -> Iterator[StoredObject]:
        for found in self._client.list_blobs(bucket, prefix=prefix, delimiter=delimiter):
            version = f"{found.md5_hash} {found.updated}"
            yield StoredObject(f"gs://{bucket}/{found.name}", int(found.size), version)


Store = _S3 | _Google
_KINDS: dict[str, tuple[type[Store], str]] = {"s3": (_S3, "s3"), "gs": (_Google, "dataflow")}
"""The client class for each scheme, and the extra of Paraloom that installs its library."""

_made: dict[str, tuple[Any, Store]] = {}
_lock = threading.RLock()


def store(path: str) -> tuple[Store, str, str]:
    """Return the client for a path, the bucket, and the object's name."""
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    scheme, _, rest = path.partition("://")
    bucket, _, name = rest.partition("/")
    options = FileSystems._pipeline_options
    with _lock:
        if scheme not in _made or _made[scheme][0] is not options:
            if scheme not in _KINDS:
                raise UserError(f"{path}: unknown file system {scheme}://")
            kind, extra = _KINDS[scheme]
            try:
                _made[scheme] = options, kind(options or PipelineOptions([]))
            except (ImportError, AssertionError) as error:
                install = f"pip install 'paraloom[{extra}]'"
                raise UserError(f"{path}: a library is missing: {install}") from error
        return _made[scheme][1], bucket, name


os.register_at_fork(after_in_child=_made.clear)  # a forked process needs new clients


class _Object(io.RawIOBase):
    def __init__(self, path: str) -> None:
        self._store, self._bucket, self._name = store(path)
        self._size, self._at = self._store.size(self._bucket, self._name), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        data = self._store.read(self._bucket, self._name, self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def opened(path: str) -> io.BufferedReader:
    """Open an object for reading."""
    return io.BufferedReader(_Object(path), 1 << 23)
