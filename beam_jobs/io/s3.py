"""Persistent S3 clients.

Beam creates a client for every request, which takes twenty times as long as the request.
"""

import threading
from typing import Any

from apache_beam.io.aws import s3io

_cached = threading.local()  # a client reads from one stream at a time


class CachedS3IO(s3io.S3IO):
    """Beam's S3, with one client per thread for the same options."""

    client: Any

    def __init__(self, client: Any = None, options: Any = None) -> None:
        if client is not None or options is None:
            super().__init__(client, options)
            return
        if getattr(_cached, "options", None) is not options:  # comparing values would take as long
            super().__init__(None, options)
            _cached.options, _cached.client = options, self.client
        self.client = _cached.client


def cache_clients() -> None:
    """Make Beam's S3 file system reuse its clients in this process."""
    s3io.S3IO = CachedS3IO
