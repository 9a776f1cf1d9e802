"""Names of the small models that `tests.hub_models` makes, and what stands beside their folders.

Only where a model is made, Transformers is imported, which takes seconds.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

NAMES = ("marian", "marian2", "m2m100", "nllb", "mbart25", "mbart50", "madlad", "t5", "mt5")
LONGEST = 60
"""Most subwords of a translation."""


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


class Expected(NamedTuple):
    """What Transformers gives for a pair."""

    source: str
    reference: str
    hypotheses: list[list[str]]
    """Of a beam of 12, best first; without tag and end of sentence."""
    score: float
    """The mean log probability of the best one's subwords, end of sentence included."""
    ended: bool
    """Whether the best one ends."""
    reference_score: float


def expected_of(folder: Path) -> list[Expected]:
    """What `tests.hub_models.make` found Transformers to give."""
    rows = json.loads((folder.parent / f"{folder.name}.json").read_text())
    return [Expected(*row) for row in rows]
