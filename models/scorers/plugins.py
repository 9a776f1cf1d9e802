"""Scorers that others bring: by a package's entry point, or in a file of one's own.

Workers get the name of the entry point or the text of the file, and load the scorer themselves.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from paraloom.models.errors import UserError
from paraloom.models.scorers.base import Scorer

GROUP = "paraloom.scorers"
"""The group of entry points; an entry point's name is the scorer's, its value a `Scorer`."""

COLUMNS = ("reference", "translation", "source", "id")
"""What `Scorer.reads` may name."""

_TAKEN = ("pairs", "names", "sources", "language")
"""Parameters that have another meaning."""

_FILE = re.compile(r"(.+\.py):([^:]+)")
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


class ScorerSource(Protocol):
    """Where a worker gets a scorer from that is not one of `SCORERS`."""

    @property
    def name(self) -> str:
        """The scorer's name, which is that of its column."""

    def load(self) -> Scorer:
        """The scorer."""

    def key(self) -> Any:
        """JSON values that stand for everything the source adds to the scorer's version."""


@dataclass(frozen=True, slots=True)
class PackageScorer:
    """A scorer that an installed package declares under `GROUP`."""

    name: str

    def load(self) -> Scorer:
        """Import the package; errors as in `ScorerSource`."""
        point = installed().get(self.name)
        if point is None:
            raise UserError(f"scorer {self.name!r}: no package here declares it under {GROUP}")
        values = {other.value for other in entry_points(group=GROUP, name=self.name)}
        if len(values) > 1:
            raise UserError(
                f"scorer {self.name!r}: several packages declare it ({', '.join(sorted(values))}); "
                "uninstall all but one"
            )
        try:
            found = point.load()
        except (Exception, SystemExit) as error:
            raise UserError(_failure(f"{self.name} ({point.value})", error)) from error
        return _checked(found, f"{self.name} ({point.value})")

    def key(self) -> Any:
        """Nothing: the package raises the scorer's version."""
        return None


@dataclass(frozen=True, slots=True)
class FileScorer:
    """A scorer of a Python file, `FILE.py:NAME`."""

    name: str
    path: str
    code: str

    def load(self) -> Scorer:
        """Run the file as a module; errors as in `ScorerSource`."""
        where = f"{self.path}:{self.name}"
        try:
            module = _module(self.path, self.code)
        except (Exception, SystemExit) as error:
            raise UserError(_failure(where, error)) from error
        if not hasattr(module, self.name):
            raise UserError(f"{where}: the file defines no {self.name}")
        return _checked(getattr(module, self.name), where)

    def key(self) -> Any:
        """The text of the file: a file has no release that says when it changed."""
        return _digest(self.code)


def installed() -> dict[str, EntryPoint]:
    """The scorers that installed packages declare, by name; their modules are not imported."""
    return {point.name: point for point in entry_points(group=GROUP)}


def column_of(entry: str) -> str:
    """The column of an entry of `score.scorers`.

    >>> column_of("scorers/mine.py:politeness"), column_of("trigram_overlap")
    ('politeness', 'trigram_overlap')
    """
    match = _FILE.fullmatch(entry)
    return match[2] if match else entry


def check_name(name: str) -> None:
    """Raise a ValueError if `name` cannot be that of a score's column."""
    if not _NAME.fullmatch(name) or name.endswith("_decile"):
        raise ValueError(
            f"{name!r} cannot name a column: letters, digits and _ only, and not …_decile"
        )


def source_of(entry: str) -> PackageScorer | FileScorer:
    """The source of an entry of `score.scorers` that is not one of Paraloom's."""
    match = _FILE.fullmatch(entry)
    if not match:
        return PackageScorer(entry)
    try:
        code = Path(match[1]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UserError(f"score.scorers: {match[1]}: cannot be read ({reason})") from error
    return FileScorer(match[2], match[1], code)


@cache
def _module(path: str, code: str) -> ModuleType:
    name = f"paraloom_scorer_{_digest(code)}"
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # dataclasses and pickle look modules up by name
    try:
        exec(compile(code, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _checked(found: Any, where: str) -> Scorer:
    if not isinstance(found, Scorer):
        raise UserError(
            f"{where}: must be a paraloom.models.scorers.Scorer, not {type(found).__name__}"
        )
    if wrong := _wrong(found):
        raise UserError(f"{where}: {wrong}")
    return found


def _wrong(scorer: Scorer) -> str:
    """What a scorer declares wrongly; "" if nothing."""
    if not callable(scorer.function):
        return "function must be a function"
    for name in ("meaning", "unit"):
        text = getattr(scorer, name)
        if not isinstance(text, str) or len(text.splitlines()) > 1:
            return f"{name} must be a line of text"
    bounds = scorer.range
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        return "range must have two bounds, such as (0, 1) or (None, 0)"
    if not all(bound is None or isinstance(bound, int | float) for bound in bounds):
        return "the bounds of range must be numbers or None"
    low, high = (
        end if bound is None else bound
        for bound, end in zip(bounds, (-math.inf, math.inf), strict=True)
    )
    if not low < high:
        return f"range begins at {low:g}, which is not below its end {high:g}"
    if isinstance(scorer.reads, str) or not set(scorer.reads) <= set(COLUMNS):
        return f"reads must be names of {', '.join(COLUMNS)}"
    if type(scorer.version) is not int:
        return "version must be a whole number"
    if scorer.resource and scorer.resource.name in _TAKEN:
        return f"its resource must not be named {scorer.resource.name}"
    return ""


def _failure(where: str, error: BaseException) -> str:
    return f"{where}: {type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"
