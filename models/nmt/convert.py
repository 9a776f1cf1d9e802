"""Conversion of a model to CTranslate2's format, once, with a cache."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from models.files import atomic_folder

_LIMITS = "paraloom.json"


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


def convert_once(model: Convertible) -> Conversion:
    """The cached conversion of a model; the first call converts it, which needs torch.

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
        if (path / _LIMITS).is_file():
            return _open(path)
    path = candidates[0] if _writable(model.path) else candidates[1]
    with _lock(path):
        if not (path / _LIMITS).is_file():  # another process may have converted it meanwhile
            with atomic_folder(path) as out:
                source, target = model.convert(out)
                limits = {"source_positions": source, "target_positions": target}
                (out / _LIMITS).write_text(json.dumps(limits))
    return _open(path)


def _open(path: Path) -> Conversion:
    return Conversion(path, **json.loads((path / _LIMITS).read_text()))


def _writable(folder: Path) -> bool:
    in_hub_cache = any(part.startswith("models--") for part in folder.parts)
    return os.access(folder, os.W_OK) and not in_hub_cache


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Let one process at a time write `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.parent / f".{path.name.removeprefix('.')}.lock"
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
