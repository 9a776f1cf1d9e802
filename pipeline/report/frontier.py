"""How much meaning more difference costs, for corpora as large as the selected one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from paraloom.beam_jobs.io.shards import Deciles
from paraloom.beam_jobs.select import Criteria
from paraloom.beam_jobs.transforms.predicates import Predicate
from paraloom.pipeline.report.describe import readable
from paraloom.pipeline.report.report_data import WORDING, Array, axes
from paraloom.pipeline.report.thresholds import Sample, good_of, meets

_POINTS = 12


class Point(NamedTuple):
    """A selection by a bound on each of the two scores."""

    where: tuple[Predicate, ...]  # wording, then meaning; of the run's own selection, none
    rows: int  # of the run, estimated from the sample
    difference: float  # median of 1 − unigram F1
    meaning: float  # median of the score of meaning
    good: int
    judged: int


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """Selections that keep as many pairs as the run's own."""

    wording: str
    meaning: str
    points: list[Point]  # the bound on wording becomes looser
    chosen: Point

    @property
    def with_precision(self) -> bool:
        """Whether every point has judged pairs."""
        return all(point.judged for point in (*self.points, self.chosen))

    @property
    def height(self) -> str:
        """What the curve shows against difference."""
        return "precision" if self.with_precision else f"median {readable(self.meaning)}"

    def place(self, point: Point) -> tuple[float, float]:
        """The place of a point in the plot."""
        height = point.good / point.judged if self.with_precision else point.meaning
        return point.difference, height

    @property
    def curve(self) -> list[tuple[float, float]]:
        """The places of all points but the run's own selection."""
        return [self.place(point) for point in self.points]

    @property
    def words(self) -> str:
        """The run's own selection in one sentence."""
        difference, height = self.place(self.chosen)
        return (
            f"The selection: {self.chosen.rows:,} pairs before repeats are left out, median difference {difference:.2f}, "
            f"{self.height} {height:.2f}."
        )

    @property
    def columns(self) -> list[str]:
        """The columns of a table of the points."""
        bounds = [f"{p.column} {p.operator}" for p in self.points[0].where]
        found = [*bounds, "pairs", "median difference", f"median {readable(self.meaning)}"]
        return [*found, *(["good of judged pairs"] if self.chosen.judged else [])]

    @property
    def rows(self) -> list[tuple[str, list[str], bool]]:
        """The head and the cells of each row, and whether it is the run's own selection."""
        found = []
        for point in (*self.points, self.chosen):
            cells = [f"{point.rows:,}", f"{point.difference:.2f}", f"{point.meaning:.2f}"]
            if self.chosen.judged:
                cells.append(good_of(point.good, point.judged) if point.judged else "")
            bounds = [f"{p.numbers[0]:.3g}" for p in point.where] or ["the selection", ""]
            found.append((bounds[0], [bounds[1], *cells], not point.where))
        return found


def frontier(sample: Sample, criteria: Criteria, deciles: Mapping[str, Deciles]) -> Frontier | None:
    """Move the bound on wording; that on meaning follows, so that as many pairs are kept.

    All other criteria stay. None without two such scores, or if nothing is selected.
    """
    limited = [criteria.by, *(predicate.column for predicate in criteria.where)]
    wording, meaning = axes(deciles, limited) or ("", "")
    selected = meets(sample.pairs, criteria)
    if wording not in WORDING or not selected.any():
        return None
    where = tuple(p for p in criteria.where if p.column not in (wording, meaning))
    rest = replace(criteria, where=where)
    if criteria.by in (wording, meaning):
        rest = replace(rest, deciles=None)
    more = ">=" if wording == "edit_distance" else "<="
    free, of_judged = meets(sample.pairs, rest), meets(sample.judged, rest)
    words, means = (sample.pairs[name].to_numpy() for name in (wording, meaning))

    def point(kept: Array, judged: Array, *where: Predicate) -> Point:
        return Point(
            where,
            rows=round(int(kept.sum()) * sample.rows / len(kept)),
            difference=float(np.median(sample.difference[kept])),
            meaning=float(np.median(means[kept])),
            good=int(sample.good[judged].sum()),
            judged=int(judged.sum()),
        )

    def keeping(bound: float) -> Point:
        first = Predicate(wording, more, bound)
        inside = free & first.holds(words)
        least = float(np.sort(means[inside])[-selected.sum()])
        both = first, Predicate(meaning, ">=", least)
        judged = of_judged & np.all([p.holds(sample.judged[p.column].to_numpy()) for p in both], 0)
        return point(inside & both[1].holds(means), judged, *both)

    ordered = np.sort(words[free])[:: 1 if more == "<=" else -1]
    at = np.linspace(selected.sum() - 1, len(ordered) - 1, _POINTS).round().astype(int)
    bounds = {*ordered[at].tolist()}
    bounds |= {p.numbers[0] for p in criteria.where if (p.column, p.operator) == (wording, more)}
    found = [keeping(bound) for bound in sorted(bounds, reverse=more == ">=")]
    chosen = point(selected, meets(sample.judged, criteria))
    return Frontier(wording=wording, meaning=meaning, points=found, chosen=chosen)
