"""A fairseq model in CTranslate2's form, converted once and cached beside the model."""

from __future__ import annotations

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
class Converted:
    """A converted model: its folder, and the positions that the model has."""

    path: Path
    source_positions: int
    target_positions: int


def converted(folder: ModelFolder) -> Converted:
    """The conversion of a model, made now if there is none; torch is needed only then.

    It lies in a hidden folder of the model folder, or, where that cannot be written, in
    `$XDG_CACHE_HOME/paraloom`. Its name holds the digest of what it was made from, so another
    checkpoint gets another conversion. Weights stay float32: other types are made on loading.

    Raises:
        UserError: the checkpoint cannot be read or converted.
    """
    import ctranslate2

    name = f".ctranslate2-{ctranslate2.__version__.split('.')[0]}-{folder.digest[:16]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paraloom" / "nmt"
    places = [folder.path / name, cache / name.removeprefix(".")]
    for place in places:
        if (place / _LIMITS).is_file():
            return _open(place)
    place = places[0] if _writable(folder.path) else places[1]
    with _lock(place):
        if not (place / _LIMITS).is_file():  # another process may have been quicker
            _convert(folder, place)
    return _open(place)


def _convert(folder: ModelFolder, place: Path) -> None:
    import torch
    from ctranslate2.converters import FairseqConverter
    from torch.serialization import safe_globals

    from models.nmt.checkpoint import build_model, read_checkpoint

    checkpoint = read_checkpoint(folder)
    build_model(folder, checkpoint)  # the clear errors are here, not in the converter
    with atomic_folder(place) as out, tempfile.TemporaryDirectory() as scratch:
        clean = Path(scratch) / "checkpoint.pt"
        torch.save({"args": checkpoint.settings, "model": checkpoint.weights}, clean)
        converter = FairseqConverter(
            str(clean),
            str(folder.path),
            source_lang=checkpoint.source_language,
            target_lang=checkpoint.target_language,
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
        keys = ("source_positions", "target_positions")
        (out / _LIMITS).write_text(json.dumps({key: getattr(checkpoint, key) for key in keys}))


def _open(place: Path) -> Converted:
    return Converted(place, **json.loads((place / _LIMITS).read_text()))


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    """Let one process at a time make what shall lie at `place`."""
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = place.parent / f".{place.name.removeprefix('.')}.lock"
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
