"""From scores of single deciles to a range of deciles.

Deciles are compared on samples of equal size (ParaNMT, Table 4). The number of deciles cannot be
chosen in this way: a wider range has worse pairs, but more of them. For each score, a contiguous
range of deciles is therefore grown greedily from the best one, and every range is evaluated on all
its pairs up to a limit. In a small corpus the amount of data counts; in a large one, in which every
range reaches the limit, only quality does. Among ranges within one standard error of the best
(Breiman et al. 1984, 3.4.3), the largest is selected: beyond the limit, more pairs of the same
quality can only help.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from paraloom.pipeline.records import Candidate


def grow_ranges(scores: Mapping[int, float]) -> list[tuple[int, ...]]:
    """Ranges of 1, 2, … deciles: the best decile, then each time the better neighbour as well.

    A range does not grow beyond a decile that is not in `scores`.

    >>> grow_ranges({0: 1.0, 1: 3.0, 2: 2.0, 3: 2.5})
    [(1,), (1, 2), (1, 2, 3), (0, 1, 2, 3)]
    """
    low = high = max(scores, key=lambda decile: (scores[decile], decile))
    ranges: list[tuple[int, ...]] = [(low,)]
    while neighbours := [decile for decile in (low - 1, high + 1) if decile in scores]:
        best = max(neighbours, key=lambda decile: (scores[decile], decile))
        low, high = min(low, best), max(high, best)
        ranges.append(tuple(range(low, high + 1)))
    return ranges


def best_deciles(scores: Mapping[int, float], count: int) -> tuple[int, ...]:
    """The deciles with the highest scores, so many or all there are; of equal ones the higher.

    >>> best_deciles({0: 1.0, 1: 3.0, 2: 2.0, 3: 3.0}, 2)
    (1, 3)
    """
    ranked = sorted(scores, key=lambda decile: (scores[decile], decile), reverse=True)
    return tuple(sorted(ranked[:count]))


def pooled_deviation(groups: Iterable[Sequence[float]]) -> float:
    """The pooled standard deviation within groups; 0 if each has one value.

    >>> pooled_deviation([(1.0, 3.0), (7.0, 9.0)]) == math.sqrt(2)
    True
    """
    squares, degrees = 0.0, 0
    for values in groups:
        mean = fmean(values)
        squares += sum((value - mean) ** 2 for value in values)
        degrees += len(values) - 1
    return math.sqrt(squares / degrees) if degrees else 0.0


def largest_of_the_best(candidates: Sequence[Candidate], error: float) -> Candidate:
    """The candidate with most rows among those at most `error` below the best mean."""
    best = max(candidate.mean for candidate in candidates)
    near = [candidate for candidate in candidates if candidate.mean >= best - error]
    return max(near, key=lambda candidate: (candidate.rows, candidate.mean, candidate.scorer))
