"""From scores of deciles to a run of them: the statistics of the choice.

*Which deciles are good* is asked at equal size: as many pairs of each (ParaNMT, Table 4). *How many
to take* cannot be asked so: a wider run has worse pairs, and more of them. So every scorer's run
grows from its best decile by the better neighbour, and each width is tried as it would be used,
with all its pairs up to a limit: in a small corpus amount counts for what it is worth, in a large
one, where every run reaches the limit, quality alone. Of the runs that are as good as the best, as
far as the seeds can tell (within one standard error: Breiman et al. 1984, 3.4.3), the one with most
pairs is taken; beyond the limit more of the same quality can only help.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run of neighbouring deciles, and what it gave.

    Attributes:
        rows: of the run in the whole corpus.
        pairs: that it was tried with.
        scores: one per seed.
    """

    scorer: str
    deciles: tuple[int, ...]
    rows: int
    pairs: int
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.scores)


def grown(curve: Mapping[int, float]) -> list[tuple[int, ...]]:
    """Runs of 1, 2, … deciles: from the best one on, each time with the better neighbour.

    A decile that is not in `curve` ends the growth on its side.

    >>> grown({0: 1.0, 1: 3.0, 2: 2.0, 3: 2.5})
    [(1,), (1, 2), (1, 2, 3), (0, 1, 2, 3)]
    """
    low = high = max(curve, key=lambda decile: (curve[decile], decile))
    runs: list[tuple[int, ...]] = [(low,)]
    while beside := [decile for decile in (low - 1, high + 1) if decile in curve]:
        best = max(beside, key=lambda decile: (curve[decile], decile))
        low, high = min(low, best), max(high, best)
        runs.append(tuple(range(low, high + 1)))
    return runs


def spread(groups: Iterable[Sequence[float]]) -> float:
    """The standard deviation within groups, from all of them together; 0 where each has one value.

    >>> spread([(1.0, 3.0), (7.0, 9.0)]) == math.sqrt(2)
    True
    """
    squares, free = 0.0, 0
    for values in groups:
        mean = fmean(values)
        squares += sum((value - mean) ** 2 for value in values)
        free += len(values) - 1
    return math.sqrt(squares / free) if free else 0.0


def error_of_difference(deviation: float, seeds: int) -> float:
    """The standard error of the difference of two means over as many seeds."""
    return deviation * math.sqrt(2 / seeds)


def largest_of_the_best(candidates: Sequence[Candidate], error: float) -> Candidate:
    """The most pairs among the candidates that are at most `error` behind the best mean."""
    best = max(candidate.mean for candidate in candidates)
    near = [candidate for candidate in candidates if candidate.mean >= best - error]
    return max(near, key=lambda candidate: (candidate.rows, candidate.mean, candidate.scorer))
