"""Object stores: clients that last, and objects that are read, written or removed in one request.

Beam makes a client for every operation, which takes longer than the operation, and lets it send two
to six requests for an object.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, cast

from apache_beam.io.aws import s3io
from apache_beam.io.aws.clients.s3 import boto3_client
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import GoogleCloudOptions

from paraloom.models.errors import UserError

try:
    from apache_beam.io.gcp import gcsio
except ImportError:  # `paraloom[dataflow]` is not installed
    gcsio = None

_PIECE = 1 << 24  # bytes of a stream that are sent at once

Write = Callable[[bytes], Any]


class Store:
    """Whole objects in any file system that Beam knows; paths have its scheme."""

    def read(self, path: str) -> bytes:
        """The content of an object."""
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            return cast(bytes, stream.read())

    def write(self, path: str, data: bytes) -> None:
        """Write an object, which shows when it is complete."""
        with self.writing(path) as write:
            write(data)

    @contextmanager
    def writing(self, path: str) -> Iterator[Write]:
        """Write an object in pieces; it shows only if the block succeeds."""
        sink = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
        try:
            yield sink.write
        except BaseException:
            # Closing publishes the object, and so does the deletion of the stream.
            with suppress(Exception):
                sink.close()
                FileSystems.delete([path])
            raise
        sink.close()

    def remove(self, path: str) -> None:
        """Remove an object, if it exists."""
        FileSystems.delete([path])


class _S3(Store):
    def read(self, path: str) -> bytes:
        client, place = self._object(path)
        try:
            found = client.get_object(**place)
        except client.exceptions.NoSuchKey as error:
            raise FileNotFoundError(str(error)) from error
        try:
            return cast(bytes, found["Body"].read())
        except Exception:  # the connection broke meanwhile
            return cast(bytes, client.get_object(**place)["Body"].read())

    def write(self, path: str, data: bytes) -> None:
        client, place = self._object(path)
        client.put_object(**place, Body=data)

    @contextmanager
    def writing(self, path: str) -> Iterator[Write]:
        client, place = self._object(path)
        upload = s3io.S3Uploader(boto3_client.Client(_options()), path)
        try:
            yield lambda data: upload.put(memoryview(data))
            upload.finish()
        except BaseException:
            with suppress(Exception):
                client.abort_multipart_upload(**place, UploadId=upload.upload_id)
            raise

    def remove(self, path: str) -> None:
        client, place = self._object(path)
        client.delete_object(**place)

    def _object(self, path: str) -> tuple[Any, dict[str, str]]:
        bucket, key = s3io.parse_s3_path(path)
        return boto3_client.Client(_options()).client, {"Bucket": bucket, "Key": key}


class _Google(Store):
    def read(self, path: str) -> bytes:
        return cast(bytes, self._object(path).download_as_bytes(raw_download=True))

    def write(self, path: str, data: bytes) -> None:
        self._object(path).upload_from_string(data, "application/octet-stream")

    @contextmanager
    def writing(self, path: str) -> Iterator[Write]:
        with self._object(path).open("wb", chunk_size=_PIECE, ignore_flush=True) as sink:
            yield sink.write

    def remove(self, path: str) -> None:
        gcsio.GcsIO(pipeline_options=_options()).delete(path)

    def _object(self, path: str) -> Any:
        bucket, name = gcsio.parse_gcs_path(path)
        return gcsio.create_storage_client(_options()).bucket(bucket).blob(name)


_STORES = {"s3": _S3(), "gs": _Google()}


def store(path: str) -> Store:
    """What reads and writes the object at `path`."""
    return _STORES.get(path.partition("://")[0]) or Store()


def _options() -> Any:
    return FileSystems._pipeline_options


def _one_a_thread(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, which for the same options returns what it made in this thread."""
    kept = threading.local()  # a client reads from one stream at a time

    def get(options: Any, *given: Any, **more: Any) -> Any:
        if getattr(kept, "options", None) is not options:  # comparing values would take as long
            kept.client, kept.options = make(options, *given, **more), options
        return kept.client

    return get


def _google_client(options: Any, *given: Any, **more: Any) -> Any:
    """Beam's client, which without credentials would wait 20 seconds and go on."""
    if options.view_as(GoogleCloudOptions).no_auth:
        return _of_google(options, use_credentials=False)
    check_google_credentials()
    return _of_google(options, *given, **more)


@cache
def check_google_credentials() -> None:
    """Raise a UserError if this process has no credentials for Google Cloud."""
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    try:
        google.auth.default()
    except DefaultCredentialsError as error:
        raise UserError(
            "gs://: no credentials for Google Cloud; set GOOGLE_APPLICATION_CREDENTIALS to the key "
            "file of a service account, or run `gcloud auth application-default login`; public "
            "buckets need none with `-- --no_auth`"
        ) from error


class _S3Client(boto3_client.Client):
    """Beam's client of a thread: boto3's, which takes long to make, is of the process."""

    _lock = threading.Lock()
    _made: Any = None

    def __init__(self, options: Any) -> None:
        with self._lock:
            if self._made is None or self._made[0] is not options:
                super().__init__(options)
                type(self)._made = options, dict(vars(self))
            self.__dict__.update(self._made[1])


# Beam's file systems make their clients by these names.
boto3_client.Client = _one_a_thread(_S3Client)
if gcsio:
    # Traces, which nobody reads, would ask for the bucket with each client and each missing object.
    os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    _of_google = gcsio.create_storage_client
    gcsio.create_storage_client = _one_a_thread(_google_client)
