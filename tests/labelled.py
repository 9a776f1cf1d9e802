"""Made-up labelled pairs, in memory and in files of SICK's format."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from paraloom.models.embeddings.datasets.similarity import LabelledPairs

WORDS = ("dog", "cat", "man", "woman", "runs", "sleeps", "eats", "sings")
JUDGMENTS = ("NEUTRAL", "CONTRADICTION", "ENTAILMENT")
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def labelled(
    first: Sequence[str],
    second: Sequence[str],
    scores: ArrayLike,
    group: str = "STS 2014",
    name: str = "made",
    **more: Any,
) -> LabelledPairs:
    """Return a data set of the given pairs."""
    sides = {"first": pa.array(first), "second": pa.array(second)}
    scores = np.asarray(scores, np.float64)
    return LabelledPairs(group=group, name=name, **sides, scores=scores, **more)


def write_sick(folder: Path, **rows: int) -> Path:
    """Write a folder like SICK's. A pair's label is 1 plus the number of shared words."""
    random = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for name, count in rows.items():
        lines = []
        for i in range(count):
            first = random.choice(WORDS, 4, replace=False)
            kept = int(random.integers(0, 5))
            second = [*first[:kept], *[w for w in WORDS if w not in first][: 4 - kept]]
            random.shuffle(second)
            judgment = JUDGMENTS[0 if kept < 2 else 1 if kept < 4 else 2]
            lines.append(f"{i}\t{' '.join(first)}\t{' '.join(second)}\t{1 + kept}\t{judgment}\n")
        (folder / f"SICK_{name}.txt").write_text(SICK_HEADER + "".join(lines))
    return folder
