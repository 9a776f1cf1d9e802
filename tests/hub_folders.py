"""Names and expected results of the small models that `tests.hub_models` makes.

This module does not import Transformers, which takes seconds.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

NAMES = ("marian", "marian2", "m2m100", "nllb", "mbart25", "mbart50", "madlad", "t5", "mt5")
LONGEST = 60
"""Maximum number of subwords in a translation."""


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


class Expected(NamedTuple):
    """Transformers' results for a pair."""

    source: str
    reference: str
    hypotheses: list[list[str]]
    """Subwords of the 12 best translations, best first, without tag and end of sentence."""
    score: float
    """Mean log probability of the best translation's subwords, including the end of sentence."""
    ended: bool
    """Whether the best translation has an end of sentence."""
    reference_score: float


def expected_of(folder: Path) -> list[Expected]:
    """Read the results that `tests.hub_models.make` wrote."""
    rows = json.loads((folder.parent / f"{folder.name}.json").read_text())
    return [Expected(*row) for row in rows]
