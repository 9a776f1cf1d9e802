"""What a table is: rows of cells, and the claims of a paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.experiments.cells import Scores

Found = Mapping[Any, Sequence[Scores]]
"""Scores by cell, one entry per seed."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: one row is better than another."""

    better: str
    worse: str
    printed: Mapping[str, float | None] = field(default_factory=dict)
    """The measures that the paper claims it by, with the difference that it prints (None: only in a
    figure); empty: all reported measures."""
    figures: str = ""
    """The paper's figures of both rows by its own measure, if that is none of the table."""


def printed_claims(
    pairs: Iterable[tuple[str, str]], paper: Mapping[str, Mapping[str, float]]
) -> list[Claim]:
    """The order of rows as the paper prints them: a claim for each direction that occurs."""
    claims = []
    for rows in pairs:
        for better, worse in (rows, rows[::-1]):
            found = {
                measure: round(figure - paper[worse][measure], 4)
                for measure, figure in paper[better].items()
                if measure in paper[worse] and measure not in (*ERRORS, "development")
            }
            if ahead := {measure: gain for measure, gain in found.items() if gain > 0}:
                claims.append(Claim(better, worse, ahead))
    return claims


ERRORS = ("mse",)
MEASURES = {"development": "STS 2012–2014", "sts_2015": "STS 2015", "sick": "SICK trial"}


@dataclass(frozen=True)
class Table:
    """Rows of cells by name, and claims about them."""

    title: str
    rows: Mapping[str, Any]
    claims: list[Claim]
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

    @property
    def reported(self) -> list[str]:
        """The measures that claims are judged by: no development data, no errors."""
        return [m for m in self.measures if "development" not in m and m not in ERRORS]

    def values(self, row: str, measure: str, found: Found) -> list[float]:
        """The scores of a row, one per seed; NaN where the data of a measure are missing."""
        key = self.prefixes.get(row, "") + measure
        return [scores.get(key, math.nan) for scores in found[self.rows[row]]]
