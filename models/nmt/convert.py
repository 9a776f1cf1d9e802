"""Conversion of a fairseq model to CTranslate2's format, once, with a cache."""

import argparse
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from models.errors import UserError
from models.files import atomic_folder
from models.nmt.model_folder import ModelFolder

_LIMITS = "paraloom.json"


@dataclass(frozen=True)
class Conversion:
    """A converted model: its folder and its numbers of positions."""

    path: Path
    source_positions: int
    target_positions: int


def convert_once(folder: ModelFolder) -> Conversion:
    """The cached conversion of a model; the first call converts it, which needs torch.

    The cache is a hidden folder in the model folder or, if that is not writable, in
    `$XDG_CACHE_HOME/paraloom`. Its name contains the digest of the model, so that another
    checkpoint is converted anew. Weights are float32; CTranslate2 casts them when it loads them.

    Raises:
        UserError: the checkpoint cannot be read or converted.
    """
    import ctranslate2

    name = f".ctranslate2-{ctranslate2.__version__.split('.')[0]}-{folder.digest[:16]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom" / "nmt"
    candidates = [folder.path / name, cache / name.removeprefix(".")]
    for path in candidates:
        if (path / _LIMITS).is_file():
            return _open(path)
    path = candidates[0] if _writable(folder.path) else candidates[1]
    with _lock(path):
        if not (path / _LIMITS).is_file():  # another process may have converted it meanwhile
            _convert(folder, path)
    return _open(path)


def _convert(folder: ModelFolder, path: Path) -> None:
    import torch
    from ctranslate2.converters import FairseqConverter
    from torch.serialization import safe_globals

    from models.nmt.checkpoint import build_model, read_checkpoint

    checkpoint = read_checkpoint(folder)
    settings = checkpoint.settings
    build_model(folder, checkpoint)  # raises clear errors; the converter does not
    with atomic_folder(path) as out, tempfile.TemporaryDirectory() as scratch:
        clean = Path(scratch) / "checkpoint.pt"
        torch.save({"args": settings, "model": checkpoint.weights}, clean)
        converter = FairseqConverter(
            str(clean),
            str(folder.path),
            source_lang=settings.source_lang,
            target_lang=settings.target_lang,
        )
        try:
            with safe_globals([argparse.Namespace]):
                converter.convert(str(out), force=True)
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{folder.checkpoint}: CTranslate2 cannot convert it ({reason}); "
                "choose engine fairseq"
            ) from error
        positions = {
            "source_positions": settings.max_source_positions,
            "target_positions": settings.max_target_positions,
        }
        (out / _LIMITS).write_text(json.dumps(positions))


def _open(path: Path) -> Conversion:
    return Conversion(path, **json.loads((path / _LIMITS).read_text()))


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Let one process at a time write `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.parent / f".{path.name.removeprefix('.')}.lock"
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
