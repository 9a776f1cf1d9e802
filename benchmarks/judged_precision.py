"""Measures the precision of a recommended cut on judgments that did not choose the cut.

python -m benchmarks.judged_precision [--labels FILE] [--model DIR] [--splits N]

The references of the judged pairs are split at random. One half chooses the cut and states its
precision, and the other half measures this precision. As in a run, deciles are computed over all
pairs. The table counts the splits in which the measured precision is within the stated Wilson
interval. Wilson's interval assumes independent pairs and ignores that the cut was chosen.
"""

from dataclasses import replace
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np
import typer

from benchmarks.measure import DATA, Measured, command_line
from paraloom.models.errors import UserError
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.judging.agreement import JudgedPairs, measure, score_labels

JUDGMENTS = str(DATA / "judgments" / "parabank-even.tsv")
PRECISIONS = (0.8, 0.9)
GOOD = 70.0


class Split(NamedTuple):
    """The precision that one half stated, and the precision that the other half measured."""

    measured: float
    wilson: tuple[float, float]
    reached: bool  # False: no cut reaches the precision, and the nearest cut was measured


def split(pairs: JudgedPairs, wanted: float, seed: int) -> Split:
    """Choose a cut on half of the references, and measure it on the other half."""
    group = np.unique(pairs.references, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(int(group.max()) + 1)
    first = np.isin(group, order[: len(order) // 2])
    good = pairs.labels >= GOOD
    half = replace(
        pairs,
        labels=pairs.labels[first],
        references=pairs.references[first],
        scores={name: of[first] for name, of in pairs.scores.items()},
        deciles={name: of[first] for name, of in pairs.deciles.items()},
    )
    if not (cuts := measure(half, good=GOOD, precisions=[wanted]).cuts):
        raise UserError("too few judged references to split them")
    (cut,) = cuts
    kept = np.isin(pairs.deciles[cut.score], cut.deciles) & ~first
    return Split(float(good[kept].mean()), cut.wilson, cut.reached)


def main(
    labels: Annotated[str, typer.Option(help="As in `paraloom agreement`.")] = JUDGMENTS,
    model: Annotated[str, typer.Option(help="Model for sentence_similarity.")] = "",
    splits: int = 400,
) -> None:
    """Score the labelled pairs, split them, and print the shares."""
    resource = SCORERS["sentence_similarity"].resource_name or ""
    pairs = score_labels(labels, resources={resource: model} if model else {})
    shown = Measured(f"{splits} splits of {len(pairs.labels):,} judged pairs by reference")
    for wanted in PRECISIONS:
        found = [split(pairs, wanted, seed) for seed in range(splits)]
        within = [s.wilson[0] <= s.measured <= s.wilson[1] for s in found]
        reached = [s.reached for s in found]
        enough = [s.measured >= wanted for s in found]
        shown.add(f"{wanted:g}: % within Wilson's interval", 100 * fmean(within))
        shown.add(f"{wanted:g}: % with a recommended cut", 100 * fmean(reached))
        shown.add(f"{wanted:g}: % with the wanted precision", 100 * fmean(enough))
        shown.add(f"{wanted:g}: measured precision, mean", fmean(s.measured for s in found))
    shown.done("judged_precision")


if __name__ == "__main__":
    command_line(main)
