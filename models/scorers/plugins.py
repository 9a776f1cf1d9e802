"""Plug-in scorers, from a package's entry point or a Python file."""

import hashlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.scorers.base import Scorer

GROUP = "paraloom.scorers"  # entry point group of plug-in scorers

_OURS = f"{Path(__file__).parents[2]}{os.sep}"
_FILE = re.compile(r"(.+\.py):([^:]+)")


@dataclass(frozen=True)
class ScorerSource:
    """The place from which workers load a scorer: by default, an installed package."""

    name: str  # name of the scorer and of its column

    def load(self) -> Scorer:
        """Load the scorer that a package declares as an entry point in `GROUP`."""
        if self.name not in (points := installed()):
            raise UserError(
                f"scorer {self.name!r} is neither in Paraloom nor in an installed package "
                f"(entry point group {GROUP})"
            )
        point = points[self.name]
        return _loaded(f"{self.name} ({point.value})", point.load)

    def key(self) -> Any:
        """Return a JSON value on which the scores depend, besides the scorer's version."""
        return None


@dataclass(frozen=True)
class FileScorer(ScorerSource):
    """A scorer in a Python file, written as `FILE.py:NAME`."""

    path: str
    code: str

    def load(self) -> Scorer:
        """Run the file as a module and return the scorer."""
        return _loaded(
            f"{self.path}:{self.name}", lambda: getattr(module_of(self.path, self.code), self.name)
        )

    def key(self) -> Any:
        """Return a digest of the code."""
        return _digest(self.code)


@contextmanager
def in_plugin(what: str) -> Iterator[None]:
    """Turn errors in a plug-in into a UserError that names the failing line of the plug-in."""
    try:
        yield
    except BaseException as error:
        frames = [(of.filename, of.lineno) for of in traceback.extract_tb(error.__traceback__)]
        frames = [of for of in frames if not of[0].startswith(_OURS) and "importlib" not in of[0]]
        if not frames and isinstance(error, SyntaxError):
            frames = [(error.filename or "", error.lineno)]
        lines = [line for file, line in frames if file == frames[0][0]]
        with in_one_line(f"{what}: {frames[0][0]}, line {lines[-1]}" if frames else what):
            raise


def installed() -> dict[str, EntryPoint]:
    """Return the scorers that installed packages declare, by name, without importing them."""
    return {point.name: point for point in entry_points(group=GROUP)}


def column_of(entry: str) -> str:
    """Return the column name for an entry in `score.scorers`.

    >>> column_of("scorers/mine.py:politeness"), column_of("trigram_overlap")
    ('politeness', 'trigram_overlap')
    """
    match = _FILE.fullmatch(entry)
    return match[2] if match else entry


def source_of(entry: str) -> ScorerSource:
    """Return the place of a plug-in scorer for an entry in `score.scorers`."""
    if not (match := _FILE.fullmatch(entry)):
        return ScorerSource(entry)
    with in_one_line(f"score.scorers: {match[1]}: cannot be read"):
        code = Path(match[1]).read_text(encoding="utf-8-sig")
    return FileScorer(match[2], match[1], code)


@cache
def module_of(path: str, code: str) -> ModuleType:
    """Run the text of a file as a module, and cache the module."""
    module = ModuleType(f"paraloom_plugin_{_digest(code)}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # dataclasses and pickle look modules up by name
    exec(compile(code, path, "exec", dont_inherit=True), module.__dict__)
    return module


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _loaded(where: str, load: Callable[[], Any]) -> Scorer:
    with in_plugin(where):
        found = load()
    if isinstance(found, Scorer):
        return found
    raise UserError(
        f"{where}: must be a paraloom.models.scorers.Scorer, not {type(found).__name__}"
    )
