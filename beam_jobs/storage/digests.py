"""SHA-256 of input files, which are read again only if they may have changed."""

from pathlib import Path

from paraloom.beam_jobs import storage
from paraloom.models.files import file_state, kept_digest


def file_digest(path: str) -> str:
    """SHA-256 of a file in hexadecimal; raises the same errors as `storage.file_digest`."""
    if not storage.exists(path):
        return storage.file_digest(path)  # raises the error

    def compute() -> str:
        return storage.file_digest(path)

    if storage.is_remote(path):  # its state has the store's checksum
        return kept_digest(path, lambda: ([storage.match(path)], 0.0), compute)
    return kept_digest(str(Path(path).absolute()), lambda: file_state(Path(path)), compute)
