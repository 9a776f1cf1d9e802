"""Cached conversion of models to CTranslate2's format."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraloom.models import files
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import atomic_folder, locked, user_cache
from paraloom.models.structured import parse_json, read_json

RECORD = "paraloom.json"  # file with the fields of a `Conversion`


@dataclass(frozen=True)
class Conversion:
    """A model in CTranslate2's format."""

    path: Path
    source_positions: int  # maximum length of a source in subwords
    target_positions: int
    digest: str  # SHA-256 of the files

    @property
    def vocabulary(self) -> int:
        """Number of target subwords."""
        return len(read_vocabulary(self.path, "target"))


def read_vocabulary(folder: Path, side: str) -> list[str]:
    """Read the subwords of one `side` (source or target) of a model in CTranslate2's format."""
    # Older versions of CTranslate2 wrote text files with a subword per line.
    names = [f"{of}_vocabulary.{form}" for of in ("shared", side) for form in ("json", "txt")]
    path = next((folder / name for name in names if (folder / name).is_file()), folder / names[-2])
    if path.suffix == ".json":
        return read_json(path, list[str], "a vocabulary of CTranslate2")
    with in_one_line(f"{path}: not a vocabulary of CTranslate2"):
        return path.read_bytes().decode().removesuffix("\n").split("\n")


def convert_once(model: str, convert: Callable[[Path], tuple[int, int]]) -> Conversion:
    """Return the cached conversion of a model, or convert the model.

    Conversions are in the user's own cache, because other users might write into the model folder.
    A model is converted again if the files of its conversion have changed.

    Args:
        model: SHA-256 of everything that the conversion depends on.
        convert: writes the model into a folder, and returns the source and target positions.
    """
    import ctranslate2

    path = user_cache() / "nmt" / f"ctranslate2-{ctranslate2.__version__}-{model}"
    if found := _open(path):
        return found
    with locked(path.with_name(f".{path.name}.lock")):
        if found := _open(path):  # converted by another process meanwhile
            return found
        with atomic_folder(path) as out:
            source, target = convert(out)
            found = Conversion(path, source, target, files.digest(out))
            record = {name: value for name, value in vars(found).items() if name != "path"}
            (out / RECORD).write_text(json.dumps(record))
        return found


def adopt(folder: Path, digest: str) -> None:
    """Link or copy another machine's conversion into the cache, if its SHA-256 is `digest`.

    The conversion is in `folder`, whose name must be the conversion's name in the cache.
    """
    path = user_cache() / "nmt" / folder.name
    with locked(path.with_name(f".{path.name}.lock")):
        if not _open(path) and (found := _open(folder)) and found.digest == digest:
            with atomic_folder(path) as out:
                shutil.copytree(folder, out, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copyfile(source, target)


def _open(path: Path) -> Conversion | None:
    try:
        found = Conversion(path, **parse_json((path / RECORD).read_bytes(), dict[str, Any]))
        positions = (found.source_positions, found.target_positions)
        whole = all(type(number) is int and number > 0 for number in positions)
        whole = whole and files.digest(path, ignored={RECORD}) == found.digest
    except (OSError, ValueError, TypeError, UserError):
        return None
    return found if whole else None
