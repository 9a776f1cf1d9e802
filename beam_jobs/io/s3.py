"""Clients for S3 that last.

Beam makes one for every request, which takes twenty times as long as the request.
"""

from __future__ import annotations

import threading
from typing import Any

from apache_beam.io.aws import s3io

_kept = threading.local()  # a client reads from one stream at a time


class LastingS3IO(s3io.S3IO):
    """Beam's S3, with one client a thread for the same options."""

    client: Any

    def __init__(self, client: Any = None, options: Any = None) -> None:
        if client is not None or options is None:
            super().__init__(client, options)
            return
        if getattr(_kept, "options", None) is not options:  # to compare them would take as long
            super().__init__(None, options)
            _kept.options, _kept.client = options, self.client
        self.client = _kept.client


def keep_clients() -> None:
    """Let Beam's file system for S3 keep its clients, in this process."""
    s3io.S3IO = LastingS3IO
