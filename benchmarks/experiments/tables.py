"""What a table is: rows of cells, and the claims of a paper."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.experiments.cells import Scores, figure

Found = Mapping[Any, Sequence[Scores]]
"""Scores by cell, one entry per seed."""


MINUS = " − "


@dataclass(frozen=True)
class Claim:
    """One row is better than another; `A − B` is how much better row A is than row B."""

    better: str
    worse: str
    printed: Mapping[str, float | None] = field(default_factory=dict)
    """The measures that the claim is about, with the difference that the paper prints (None: only
    in a figure); empty: all reported measures."""
    figures: str = ""
    """The paper's figures of both rows by its own measure, if the table does not have this
    measure."""
    stated: bool = True
    """Whether the paper's text makes the claim. If not, only its figures do, and where `printed` is
    negative, they order the rows the other way round."""

    @property
    def rows(self) -> list[str]:
        """The rows that the claim is about."""
        return [row for side in (self.better, self.worse) for row in side.split(MINUS)]


Pairs = Collection[tuple[str, str]]


def printed_claims(
    pairs: Pairs, paper: Mapping[str, Mapping[str, float]], stated: Pairs = ()
) -> list[Claim]:
    """Claims about pairs of rows by every measure for which the paper's figures differ.

    `stated` are the pairs whose order the text has, too.
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


ERRORS = ("mse",)
MEASURES = {"development": "STS 2012–2014", "sts_2015": "STS 2015", "sick": "SICK trial"}


@dataclass(frozen=True)
class Table:
    """Rows of cells by name, and claims about them."""

    title: str
    rows: Mapping[str, Any]
    claims: list[Claim] = field(default_factory=list)
    measures: Mapping[str, str] = field(default_factory=lambda: MEASURES)
    """Heads of the columns; `development` is measured on the development data."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """For rows that share a cell: the prefix of each row's own measures."""
    unit: str = "Pearson × 100"
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Figures of the paper, by row and measure."""
    paper_measures: Mapping[str, str] = field(default_factory=dict)
    """Heads of columns with figures of the paper by measures that only the paper has."""
    transposed: bool = False
    """Write a column for each row."""
    note: str = ""
    """Settings that the heads do not name."""

    @property
    def reported(self) -> list[str]:
        """The measures that claims are judged by: no development data, no errors."""
        return [m for m in self.measures if "development" not in m and m not in ERRORS]

    def values(self, row: str, measure: str, found: Found) -> list[float]:
        """The scores of a row, one per seed; NaN where the data of a measure are missing."""
        return [figure(score) for score in self.scores(row, measure, found)]

    def scores(self, row: str, measure: str, found: Found) -> list[NDArray[np.float64]]:
        """The scores of a row or of `A − B`, one per seed, each with the scores of resampled test
        pairs."""
        first, *others = (
            [np.atleast_1d(of.get(self.prefixes.get(name, "") + measure, math.nan)) for of in cells]
            for name in row.split(MINUS)
            for cells in [found[self.rows[name]]]
        )
        for other in others:
            first = [a - b for a, b in zip(first, other, strict=True)]
        return first

    def shares_trainings(self, claim: Claim) -> bool:
        """Whether two of a claim's rows are of the same cell."""
        return len({self.rows[row] for row in claim.rows}) < len(claim.rows)
