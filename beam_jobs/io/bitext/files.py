"""Which files a bitext consists of."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from beam_jobs.io import storage
from beam_jobs.io.bitext.lines import open_text
from beam_jobs.io.storage import is_remote
from models.errors import UserError

Format = Literal["czeng16", "czeng20", "moses", "tsv"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bitext:
    """What can be read on its own: one file, or the two files of a Moses pair."""

    format: Format
    paths: tuple[str, ...]  # one; for moses source and reference
    name: str  # unique in the input, the same in whatever folder the files lie


def find_bitext(format: Format, paths: list[str] | dict[str, str | list[str]]) -> list[Bitext]:
    """Expand paths and globs, and look into every file that they name.

    The matches of a glob are sorted; a file that several globs name is taken once. Moses takes
    `{"source": …, "reference": …}`, each a path, a glob or a list, and pairs them in this order.

    >>> find_bitext("moses", {"source": "data/*.cs.gz", "reference": "data/*.en.gz"})
    ... # doctest: +SKIP
    [Bitext(format='moses', paths=('data/train.cs.gz', 'data/train.en.gz'), name='1-train.cs')]

    Raises:
        UserError: a file is missing, unreadable, empty or neither text nor gzip, a glob matches
            nothing, or the two sides of a Moses corpus have different numbers of files.
    """
    units = dict.fromkeys(_units(format, paths))
    for path in dict.fromkeys(path for unit in units for path in unit):
        with open_text(path):
            pass
    return [
        Bitext(format=format, paths=unit, name=_name(position, unit[0]))
        for position, unit in enumerate(units, start=1)
    ]


def _units(format: Format, paths: list[str] | dict[str, str | list[str]]) -> list[tuple[str, ...]]:
    if format != "moses":
        if isinstance(paths, dict):
            raise UserError(f"input.paths: {format} takes a list, not source and reference")
        return [(path,) for path in _expand(paths, "input.paths")]
    if not isinstance(paths, dict) or set(paths) != {"source", "reference"}:
        raise UserError("input.paths: moses takes {source: …, reference: …}")
    source = _expand(paths["source"], "input.paths.source")
    reference = _expand(paths["reference"], "input.paths.reference")
    if len(source) != len(reference):
        raise UserError(
            f"input.paths: as many source as reference files are needed, but "
            f"{paths['source']} gives {len(source)} and {paths['reference']} {len(reference)}"
        )
    return list(zip(source, reference, strict=True))


def _expand(patterns: str | list[str], key: str) -> list[str]:
    patterns = [patterns] if isinstance(patterns, str) else patterns
    if not patterns:
        raise UserError(f"{key}: names no file")
    return [path for pattern in patterns for path in _matches(pattern)]


def _matches(pattern: str) -> list[str]:
    # A name without a wildcard, or a file whose name holds one, stands for itself: opening it says
    # what is wrong with it.
    if not glob.has_magic(pattern) or (not is_remote(pattern) and Path(pattern).exists()):
        return [pattern]
    if not is_remote(pattern):
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path.glob has no absolute ones
        found = [path for path in found if Path(path).is_file()]
    else:
        found = [entry.path for entry in storage.match(pattern)]
    if not found:
        raise UserError(f"{pattern}: no file matches")
    return sorted(found)


def _name(position: int, path: str) -> str:
    name = re.sub(r"[^\w.-]", "_", path.rsplit("/", 1)[-1].removesuffix(".gz"))
    return f"{position}-{name}"
