"""Conversion of a model to CTranslate2's format, once, with a cache."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ValidationError

from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, digest, lock, open_lock, user_cache
from paraloom.models.options import Count

_RECORD = "paraloom.json"


class Convertible(Protocol):
    """A model that can be converted."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that the conversion depends on."""

    def convert(self, out: Path) -> tuple[int, int]:
        """Write the converted model; return the numbers of source and target positions."""


@dataclass(frozen=True)
class Conversion:
    """A converted model: its folder, its numbers of positions, and the SHA-256 of its files."""

    path: Path
    source_positions: int
    target_positions: int
    digest: str | None = None  # None if the user has converted it: then it is the model


class _Record(BaseModel, strict=True):
    """The content of `paraloom.json`: written last, and checked when a conversion is opened."""

    source_positions: Count
    target_positions: Count
    digest: str


def convert_once(model: Convertible) -> Conversion:
    """The cached conversion of a model; the first call converts it, which needs torch.

    A conversion with other files than were written is made again, so a worker reads all of them
    once, before it loads them.

    The cache is the user's, `$XDG_CACHE_HOME/paraloom`: a model folder is of others, and its digest
    does not cover what they may have converted. The names there are the versions of CTranslate2 and
    the digests of the models. Weights are float32; CTranslate2 casts them when it loads them.
    """
    path = _place(model)
    if found := _open(path):
        return found
    with _lock(path):
        if found := _open(path):  # another process has converted it meanwhile
            return found
        with atomic_folder(path) as out:
            source, target = model.convert(out)
            record = _Record(source_positions=source, target_positions=target, digest=digest(out))
            (out / _RECORD).write_text(record.model_dump_json())
    return Conversion(path, **record.model_dump())


def forget(model: Convertible) -> None:
    """Remove the conversion of a model that is not used again from the cache."""
    shutil.rmtree(_place(model), ignore_errors=True)


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


def _place(model: Convertible) -> Path:
    import ctranslate2

    return user_cache() / "nmt" / f"ctranslate2-{ctranslate2.__version__}-{model.digest}"


def _open(path: Path) -> Conversion | None:
    """The conversion in a folder; None unless all its files are as they were written."""
    try:
        record = _Record.model_validate_json((path / _RECORD).read_bytes())
        whole = digest(path, ignored={_RECORD}) == record.digest
    except (OSError, ValidationError, UserError):
        return None
    return Conversion(path, **record.model_dump()) if whole else None


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Let one process at a time write `path`."""
    file = path.with_name(f".{path.name}.lock")
    try:
        stream = open_lock(file)
    except UserError as error:
        raise UserError(f"{error}; XDG_CACHE_HOME names another place for conversions") from error
    with stream:
        lock(stream, file)
        yield
