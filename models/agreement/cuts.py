"""The cut of a score that keeps most pairs at a wanted precision, and what to expect of it.

A cut keeps the best deciles of a score. Deciles count as many rows as could be kept of them, which
may be fewer than a tenth. The choice takes the best of many cuts, and the judged
pairs of a reference resemble each other, so the precision of the chosen cut on other references is
lower and varies more than its Wilson interval says. `recommend` therefore states another interval:
of many resamples of the references, in each of which the whole choice is made again and its cut
measured on the references that the resample left out (Efron & Tibshirani 1997).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.agreement.precision import DECILES, best_deciles
from models.agreement.resampling import (
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
    judged: int  # judged pairs in the deciles
    precision: float  # share of good pairs
    wilson: tuple[float, float]
    expected: tuple[float, float] | None
    """The interval of the precision of such a choice on references that it has not seen; None with
    too few references."""
    chance: float | None
    """Share of the resamples in which the precision on the references left out was at least
    `wanted`; None as `expected`."""


class Judged:
    """Judged pairs, counted by reference and decile.

    Args:
        deciles: of each score: int [n], 0 to 9.
        higher_is_better: of each score.
        good: whether each pair is good: bool [n].
        references: of each pair: any [n].
        rows: of the run in each decile of each score, from decile 0: [10].
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
        group = numbered(references)
        self.references = int(group.max()) + 1 if len(group) else 0
        self.rows = np.zeros((len(self.names), DECILES))
        shape = (self.references, len(self.names), DECILES)
        self._judged, self._good = np.zeros(shape), np.zeros(shape)
        for i, name in enumerate(self.names):
            # From here on the best decile of each score is the first.
            highest = self.higher_is_better[name]
            self.rows[i] = rows[name][:: -1 if highest else 1]
            rank = 9 - deciles[name] if highest else deciles[name]
            cell = group * DECILES + rank
            cells = self.references * DECILES
            self._judged[:, i] = np.bincount(cell, minlength=cells).reshape(-1, DECILES)
            self._good[:, i] = np.bincount(cell[good], minlength=cells).reshape(-1, DECILES)

    def counts(self, name: str) -> tuple[Ints, Ints]:
        """Good and judged pairs of each decile of a score, from decile 0: int [10] twice."""
        i, step = self.names.index(name), -1 if self.higher_is_better[name] else 1
        good, judged = (c[:, i].sum(0)[::step] for c in (self._good, self._judged))
        return good.astype(np.int64), judged.astype(np.int64)

    def weighted(self, weights: Floats) -> tuple[Floats, Floats]:
        """Good and judged pairs [b, scores, 10] if references count by weights [b, references]."""
        shape = len(weights), len(self.names), DECILES
        good, judged = (
            (weights @ counts.reshape(self.references, -1)).reshape(shape)
            for counts in (self._good, self._judged)
        )
        return good, judged


def recommend(
    judged: Judged, wanted: float, *, count: int = RESAMPLES, seed: int = 1
) -> Cut | None:
    """The cut that keeps most rows while its Wilson interval begins at `wanted` or above.

    Of several that keep the same percentage of all rows, the one with the highest precision; if
    there is none, the cut with the interval that begins highest.

    Returns:
        None if no score has a judged pair in its best decile with rows.
    """
    if not judged.references:
        return None
    good, pairs = judged.weighted(np.ones((1, judged.references)))
    (best,), (reached,) = _choose(good, pairs, judged.rows, wanted)
    found = [values.reshape(-1)[best] for values in best_deciles(good, pairs, judged.rows)]
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
        judged=int(pairs[0, row, : column + 1].sum()),
        precision=share,
        wilson=(low, high),
        expected=expected,
        chance=float(np.mean(found_there >= wanted)) if expected else None,
    )


def measure(judged: Judged, cut: Cut) -> float:
    """The precision of a cut on other judged pairs, over those of its deciles that have some."""
    good, pairs = judged.weighted(np.ones((1, judged.references)))
    row = judged.names.index(cut.score)
    best = np.array([row * DECILES + len(cut.deciles) - 1])
    return float(_measured(good, pairs, judged.rows, best)[0])


def _choose(
    good: Floats, pairs: Floats, rows: Floats, wanted: float
) -> tuple[Ints, NDArray[np.bool_]]:
    """The number of the chosen cut, score × 10 + deciles − 1, for each resample [b]."""
    share, low, _ = best_deciles(good, pairs, rows)
    low = np.where(np.isfinite(low), low, -1.0)
    reached = low >= wanted
    percent = np.floor(100 * np.cumsum(rows, -1) / max(rows.sum(-1).max(), 1))
    value = np.where(reached, 1 + percent + np.nan_to_num(share) / 2, low)
    chosen = value.reshape(len(value), -1).argmax(1)
    return chosen, np.asarray(reached.any((1, 2)))


def _measured(good: Floats, pairs: Floats, rows: Floats, chosen: Ints) -> Floats:
    """The precision of cut `chosen` [b]; NaN where no pair of it is judged."""
    with np.errstate(invalid="ignore", divide="ignore"):
        counted = np.where(pairs > 0, rows, 0)
        shares = np.where(pairs > 0, good / pairs, 0)
        found = np.cumsum(counted * shares, -1) / np.cumsum(counted, -1)
    return np.asarray(found.reshape(len(found), -1)[np.arange(len(chosen)), chosen])


def _on_references_left_out(judged: Judged, wanted: float, count: int, seed: int) -> Floats:
    """The precision of the cut that each resample chooses, on the references it left out."""
    found = []
    for times in resamples(judged.references, count, seed):
        chosen, _ = _choose(*judged.weighted(times), judged.rows, wanted)
        left_out = judged.weighted((times == 0).astype(float))
        found.append(_measured(*left_out, judged.rows, chosen))
    return np.concatenate(found)
