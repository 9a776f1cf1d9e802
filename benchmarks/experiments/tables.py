"""Tables of cells with the claims of a paper, and the training of missing cells."""

import math
import multiprocessing
import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from benchmarks.experiments.cells import Inputs, Scores, figure, load_scores
from paraloom.models.progress import meter

Found = Mapping[Any, Sequence[Scores]]
"""Scores by cell, one entry per seed."""
Figures = Mapping[str, Mapping[str, float]]
"""Figures of a paper, by row and measure."""

MINUS = " − "
ERRORS = ("mse",)
MEASURES = {"development": "STS 2012–2014", "sts_2015": "STS 2015", "sick": "SICK trial"}


def read_figures(name: str) -> dict[str, dict[str, float]]:
    """Return the figures of a table in `figures.yaml`."""
    table = yaml.safe_load(Path(__file__).with_name("figures.yaml").read_text("utf-8"))[name]
    return {
        row: dict(zip(table["measures"], map(float, figures), strict=True))
        for row, figures in table["rows"].items()
    }


@dataclass(frozen=True)
class Claim:
    """The claim that one row is better than another row.

    `A − B` instead of a row means the lead of row A over row B.
    """

    better: str
    worse: str
    printed: Mapping[str, float | None] = field(default_factory=dict)
    """The measures of the claim, each with the difference that the paper prints. The value is None
    if the paper only shows a plot. Without `printed`, the claim is about all reported measures.
    """
    figures: str = ""
    """The paper's figures for both rows, by a measure that the table does not have."""
    stated: bool = True
    """Whether the paper's text makes the claim. If not, only the figures of the paper do, and a
    negative difference in `printed` reverses the order of the rows."""

    @property
    def rows(self) -> list[str]:
        """The rows that the claim is about."""
        return [row for side in (self.better, self.worse) for row in side.split(MINUS)]


Pairs = Collection[tuple[str, str]]


def printed_claims(pairs: Pairs, paper: Figures, stated: Pairs = ()) -> list[Claim]:
    """Make claims about pairs of rows, with all measures for which the paper's figures differ.

    Args:
        stated: the pairs that the text of the paper orders, too.
    """
    claims = []
    for better, worse in pairs:
        found = {
            measure: round(figure - paper[worse][measure], 4)
            for measure, figure in paper[better].items()
            if measure in paper[worse] and measure not in (*ERRORS, "development")
        }
        if ahead := {measure: gain for measure, gain in found.items() if gain}:
            claims.append(Claim(better, worse, ahead, stated=(better, worse) in stated))
    return claims


@dataclass(frozen=True)
class Table:
    """Rows of cells by name, and claims about them."""

    title: str
    rows: Mapping[str, Any]
    claims: list[Claim] = field(default_factory=list)
    measures: Mapping[str, str] = field(default_factory=lambda: MEASURES)
    """Heads of the columns. `development` is measured on the development data."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """For rows that share a cell: the prefix of each row's measures."""
    unit: str = "Pearson × 100"
    paper: Figures = field(default_factory=dict)
    paper_measures: Mapping[str, str] = field(default_factory=dict)
    """Heads of columns for measures that only the paper has."""
    transposed: bool = False
    """Whether the written table has a column for each row."""
    note: str = ""
    """Settings that the heads do not name."""

    @property
    def reported(self) -> list[str]:
        """The measures that claims are judged by, without development data and errors."""
        return [m for m in self.measures if "development" not in m and m not in ERRORS]

    def values(self, row: str, measure: str, found: Found) -> list[float]:
        """Return the scores of a row, one per seed, or NaN if the data of a measure are missing."""
        return [figure(score) for score in self.scores(row, measure, found)]

    def scores(self, row: str, measure: str, found: Found) -> list[NDArray[np.float64]]:
        """Return the scores of a row or of `A − B` with their resamples, one array per seed."""
        first, *others = (
            [np.atleast_1d(of.get(self.prefixes.get(name, "") + measure, math.nan)) for of in cells]
            for name in row.split(MINUS)
            for cells in [found[self.rows[name]]]
        )
        for other in others:
            first = [a - b for a, b in zip(first, other, strict=True)]
        return first

    def shares_trainings(self, claim: Claim) -> bool:
        """Return whether two rows of a claim have the same cell."""
        return len({self.rows[row] for row in claim.rows}) < len(claim.rows)


def train(
    chosen: Mapping[str, Table], seeds: int, inputs: Inputs, workers: int
) -> dict[Any, list[Scores]]:
    """Compute missing cells in parallel, and return the scores of all cells, one per seed."""
    wanted = list(dict.fromkeys(cell for table in chosen.values() for cell in table.rows.values()))
    paths = {
        (cell, seed): cell.cell_path(seed, inputs)
        for cell in wanted
        for seed in range(1, seeds + 1)
    }
    missing = {path: key for key, path in paths.items() if not path.exists()}
    start = multiprocessing.get_context("spawn")
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the workers, each of which has one core
    with (
        meter("experiments", len(missing), "cells") as progress,
        ProcessPoolExecutor(workers, start) as processes,
    ):
        futures = [
            processes.submit(cell.run, seed, inputs, path) for path, (cell, seed) in missing.items()
        ]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                progress.set(done)
        except BaseException:
            processes.shutdown(cancel_futures=True)
            raise
    found = {path: load_scores(path, timed=True) for path in dict.fromkeys(paths.values())}
    return {cell: [found[paths[cell, seed]] for seed in range(1, seeds + 1)] for cell in wanted}
