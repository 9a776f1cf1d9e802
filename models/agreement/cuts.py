"""The cut of a score that keeps most pairs at a wanted precision, and what to expect of it.

A cut keeps the best deciles of a score. Judged pairs are weighted, so that they have the
deciles of all pairs by the score. The choice takes the best of many cuts, and the judged
pairs of a reference resemble each other, so the precision of the chosen cut on other references is
lower and varies more than its Wilson interval says. `recommend` therefore states another interval:
of many resamples of the references, in each of which the whole choice is made again and its cut
measured on the references that the resample left out (Efron & Tibshirani 1997).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paraloom.models.agreement.precision import DECILES, best_deciles, weights_of
from paraloom.models.agreement.resampling import (
    RESAMPLES,
    Floats,
    Ints,
    numbered,
    percentile_interval,
    resamples,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The best deciles of a score."""

    score: str
    deciles: tuple[int, ...]
    wanted: float  # precision
    reached: bool  # whether the Wilson interval of the precision begins at `wanted` or above
    rows: int  # in the deciles
    precision: float  # share of good pairs
    wilson: tuple[float, float]
    expected: tuple[float, float] | None
    """The interval of the precision of such a choice on references that it has not seen; None with
    too few references."""
    chance: float | None
    """Share of the resamples in which the precision on the references left out was at least
    `wanted`; None as `expected`."""


class Sums(NamedTuple):
    """Sums over judged pairs by score and decile, the best decile first: [b, scores, 10] each."""

    good: Floats  # of the weights of good pairs
    judged: Floats  # of the weights
    squares: Floats  # of their squares


class Judged:
    """Judged pairs, summed up by reference and decile, with weights as `weights_of` gives them.

    `deciles` are int [n], 0 to 9, for each score; `good` is bool [n]; `references` may be of any
    type; `rows` [10] has the run's rows in each decile of each score, from decile 0.
    """

    def __init__(
        self,
        deciles: Mapping[str, Ints],
        higher_is_better: Mapping[str, bool],
        good: NDArray[np.bool_],
        references: NDArray[Any],
        rows: Mapping[str, Sequence[int]],
    ) -> None:
        self.names = list(deciles)
        self.higher_is_better = dict(higher_is_better)
        self.rows = np.zeros((len(self.names), DECILES))
        group = numbered(references)
        self.references = int(group.max()) + 1 if len(group) else 0
        shape = (self.references, len(self.names), DECILES)
        self._sums = [np.zeros(shape) for _ in range(3)]
        for i, name in enumerate(self.names):
            # From here on the best decile of each score is the first.
            highest = self.higher_is_better[name]
            self.rows[i] = rows[name][:: -1 if highest else 1]
            cell = group * DECILES + (9 - deciles[name] if highest else deciles[name])
            weights = weights_of(deciles[name], rows[name])
            for sums, of in zip(self._sums, (weights * good, weights, weights**2), strict=True):
                counts = np.bincount(cell, of, minlength=self.references * DECILES)
                sums[:, i] = counts.reshape(-1, DECILES)

    def weighted(self, times: Floats) -> Sums:
        """The sums of weights if references count so many times: [b, references]."""
        shape = len(times), len(self.names), DECILES
        cells = len(self.names) * DECILES
        flat = (sums.reshape(self.references, cells) for sums in self._sums)
        return Sums(*((times @ sums).reshape(shape) for sums in flat))

    def curves(self) -> dict[str, Floats]:
        """The share of good pairs in the best 1, 2, … deciles of each score: [10] each."""
        sums = self.weighted(np.ones((1, self.references)))
        return dict(zip(self.names, best_deciles(*sums, self.rows).share[0], strict=True))


def recommend(
    judged: Judged, wanted: float, *, count: int = RESAMPLES, seed: int = 1
) -> Cut | None:
    """The cut that keeps most rows while its Wilson interval begins at `wanted` or above.

    Of several that keep the same percentage of all rows, the one with the highest precision; if
    there is none, the cut with the interval that begins highest. None if no score has a judged pair
    in its best decile with rows.
    """
    if not judged.references:
        return None
    sums = judged.weighted(np.ones((1, judged.references)))
    (best,), (reached,) = _choose(sums, judged.rows, wanted)
    found = [values.reshape(-1)[best] for values in best_deciles(*sums, judged.rows)]
    if not np.isfinite(found[0]):
        return None
    share, low, high = map(float, found)
    row, column = divmod(int(best), DECILES)
    name = judged.names[row]
    highest = judged.higher_is_better[name]
    elsewhere = _on_references_left_out(judged, wanted, count, seed)
    expected = percentile_interval(elsewhere)
    found_there = elsewhere[np.isfinite(elsewhere)]
    return Cut(
        score=name,
        deciles=tuple(range(9 - column, 10) if highest else range(column + 1)),
        wanted=wanted,
        reached=bool(reached),
        rows=int(judged.rows[row, : column + 1].sum()),
        precision=share,
        wilson=(low, high),
        expected=expected,
        chance=float(np.mean(found_there >= wanted)) if expected else None,
    )


def measure(judged: Judged, cut: Cut) -> float:
    """The precision of a cut on other judged pairs; NaN without pairs in it."""
    sums = judged.weighted(np.ones((1, judged.references)))
    row = judged.names.index(cut.score)
    best = np.array([row * DECILES + len(cut.deciles) - 1])
    return float(_measured(sums, best)[0])


def _choose(sums: Sums, rows: Floats, wanted: float) -> tuple[Ints, NDArray[np.bool_]]:
    """The number of the chosen cut, score × 10 + deciles − 1, for each resample [b]."""
    share, low, _ = best_deciles(*sums, rows)
    low = np.where(np.isfinite(low), low, -1.0)
    reached = low >= wanted
    percent = np.floor(100 * np.cumsum(rows, -1) / max(rows.sum(-1).max(), 1))
    value = np.where(reached, 1 + percent + np.nan_to_num(share) / 2, low)
    chosen = value.reshape(len(value), -1).argmax(1)
    return chosen, np.asarray(reached.any((1, 2)))


def _measured(sums: Sums, chosen: Ints) -> Floats:
    """The precision of cut `chosen` [b]; NaN where no pair of it is judged."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.cumsum(sums.good, -1) / np.cumsum(sums.judged, -1)
    return np.asarray(found.reshape(len(found), -1)[np.arange(len(chosen)), chosen])


def _on_references_left_out(judged: Judged, wanted: float, count: int, seed: int) -> Floats:
    """The precision of the cut that each resample chooses, on the references it left out."""
    found = []
    for times in resamples(judged.references, count, seed):
        chosen, _ = _choose(judged.weighted(times), judged.rows, wanted)
        found.append(_measured(judged.weighted((times == 0).astype(float)), chosen))
    return np.concatenate(found)
