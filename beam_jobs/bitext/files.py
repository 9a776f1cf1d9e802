"""Expansion of paths and globs in `input.paths`."""

import glob
import re
from pathlib import Path

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.storage import is_remote
from paraloom.models.errors import UserError
from paraloom.models.files import PACKED, looked_up


def expand(patterns: str | list[str], key: str) -> list[str]:
    """List the files that `patterns` match, sorted within each pattern."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    if not patterns:
        raise UserError(f"{key}: names no file")
    return [path for pattern in patterns for path in _matches(pattern)]


def unit_name(position: int, path: str) -> str:
    """Name a bitext, uniquely in the input and independently of its folder."""
    name = PACKED.sub("", path.rsplit("/", 1)[-1])
    name = re.sub(r"[^\w.-]", "_", re.sub(r"\.(jsonl|ndjson|parquet|tmx)$", "", name))
    return f"{position}-{name}"


def _matches(pattern: str) -> list[str]:
    # A path without wildcards, or an existing file with a wildcard in its name, is taken as it is;
    # opening it reports what is wrong.
    if not glob.has_magic(pattern) or (not is_remote(pattern) and Path(pattern).exists()):
        return [pattern]
    if not is_remote(pattern):
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - takes no absolute patterns
        found = [path for path in found if Path(path).is_file()]
    else:
        found = [entry.path for entry in storage.match(pattern)]
    if not found:
        raise UserError(f"{pattern}: no file matches{looked_up(pattern)}")
    return sorted(found)
