"""Conversion of a model to CTranslate2's format, once, with a cache."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ValidationError

from models.errors import UserError
from models.files import atomic_folder, digest, open_lock, read_regular
from models.options import Count

_RECORD = "paraloom.json"


class Convertible(Protocol):
    """A model that can be converted."""

    path: Path

    @property
    def digest(self) -> str:
        """SHA-256 of all that the conversion depends on."""

    def convert(self, out: Path) -> tuple[int, int]:
        """Write the converted model; return the numbers of source and target positions."""


@dataclass(frozen=True)
class Conversion:
    """A converted model: its folder and its numbers of positions."""

    path: Path
    source_positions: int
    target_positions: int


class _Record(BaseModel, strict=True):
    """The content of `paraloom.json`: written last, and checked when a conversion is opened."""

    source_positions: Count
    target_positions: Count
    files: dict[str, str]  # SHA-256 by name


def convert_once(model: Convertible) -> Conversion:
    """The cached conversion of a model; the first call converts it, which needs torch.

    A conversion with other files than were written is made again, so a worker reads all of them
    once, before it loads them.

    The cache is a hidden folder in the model folder or, if that is not writable or belongs to the
    cache of Hugging Face's Hub, in `$XDG_CACHE_HOME/paraloom`. Its name contains the digest of the
    model, so that another checkpoint is converted anew. Weights are float32; CTranslate2 casts them
    when it loads them.

    Raises:
        UserError: the model cannot be read or converted.
    """
    import ctranslate2

    name = f".ctranslate2-{ctranslate2.__version__.split('.')[0]}-{model.digest[:16]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom" / "nmt"
    candidates = [model.path / name, cache / name.removeprefix(".")]
    for path in candidates:
        if found := _open(path):
            return found
    path = candidates[0] if _writable(model.path) else candidates[1]
    with _lock(path):
        if found := _open(path):  # another process has converted it meanwhile
            return found
        with atomic_folder(path) as out:
            source, target = model.convert(out)
            record = _Record(source_positions=source, target_positions=target, files=_files(out))
            (out / _RECORD).write_text(record.model_dump_json())
    return Conversion(path, source, target)


@contextmanager
def conversion_errors(path: Path, engine: str) -> Iterator[None]:
    """Turn what libraries raise while they convert the model at `path` into a `UserError`.

    They take settings as they are, and raise many types. Errors of the system pass, such as those
    of a full disk.

    Args:
        engine: that needs no conversion, to choose instead.
    """
    try:
        yield
    except (UserError, OSError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(
            f"{path}: CTranslate2 cannot convert it ({reason}); choose engine {engine}"
        ) from error


def _open(path: Path) -> Conversion | None:
    """The conversion in a folder; None unless all its files are as they were written."""
    try:
        record = _Record.model_validate_json(read_regular(path / _RECORD))
        whole = _files(path) == record.files
    except (OSError, ValidationError, UserError):
        return None
    return Conversion(path, record.source_positions, record.target_positions) if whole else None


def _files(folder: Path) -> dict[str, str]:
    """The digests of a conversion's files by name."""
    paths = (path for path in folder.iterdir() if path.name != _RECORD)
    return {path.name: digest(path) for path in paths}


def _writable(folder: Path) -> bool:
    in_hub_cache = any(part.startswith("models--") for part in folder.parts)
    return os.access(folder, os.W_OK) and not in_hub_cache


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Let one process at a time write `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.parent / f".{path.name.removeprefix('.')}.lock"
    with open_lock(lock) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
