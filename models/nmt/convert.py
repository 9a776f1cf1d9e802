"""Conversion of a model to CTranslate2's format, once, with a cache."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paraloom.models import files
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, locked, user_cache
from paraloom.models.structured import parse_json

RECORD = "paraloom.json"
"""The file with the fields of a `Conversion`: written last, and checked when it is opened."""


@dataclass(frozen=True)
class Conversion:
    """A converted model: its folder, its numbers of positions, and the SHA-256 of its files."""

    path: Path
    source_positions: int
    target_positions: int
    digest: str

    @property
    def vocabulary(self) -> int:
        """The number of target subwords."""
        names = ("shared_vocabulary.json", "target_vocabulary.json")
        path = next(self.path / name for name in names if (self.path / name).is_file())
        return len(parse_json(path.read_bytes(), list[str]))


def convert_once(model: str, convert: Callable[[Path], tuple[int, int]]) -> Conversion:
    """The cached conversion of a model; the first call converts it, which needs torch.

    A conversion with other files than were written is made again, so a worker reads all of them
    once, before it loads them.

    The cache is the user's, `$XDG_CACHE_HOME/paraloom`: a model folder is of others, and its digest
    does not cover what they may have converted. The names there are the versions of CTranslate2 and
    the digests of the models. Weights are float32; CTranslate2 casts them when it loads them.

    Args:
        model: the SHA-256 of all that the conversion depends on.
        convert: writes the conversion into a folder; returns the numbers of positions.
    """
    import ctranslate2

    path = user_cache() / "nmt" / f"ctranslate2-{ctranslate2.__version__}-{model}"
    if found := _open(path):
        return found
    with locked(path.with_name(f".{path.name}.lock")):
        if found := _open(path):  # another process has made it
            return found
        with atomic_folder(path) as out:
            source, target = convert(out)
            found = Conversion(path, source, target, files.digest(out))
            record = {name: value for name, value in vars(found).items() if name != "path"}
            (out / RECORD).write_text(json.dumps(record))
        return found


def _open(path: Path) -> Conversion | None:
    """The conversion in a folder; None unless all its files are as they were written."""
    try:
        found = Conversion(path, **parse_json((path / RECORD).read_bytes(), dict[str, Any]))
        positions = (found.source_positions, found.target_positions)
        whole = all(type(number) is int and number > 0 for number in positions)
        whole = whole and files.digest(path, ignored={RECORD}) == found.digest
    except (OSError, ValueError, TypeError, UserError):
        return None
    return found if whole else None
