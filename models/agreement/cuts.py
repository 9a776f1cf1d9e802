"""The cut of a score that keeps most pairs at a wanted precision, and what to expect of it.

A cut keeps the best deciles of a score. The choice takes the best of many cuts, and the judged
pairs of a reference resemble each other, so the precision of the chosen cut on other references is
lower and varies more than its Wilson interval says. `recommend` therefore states another interval:
of many resamples of the references, in each of which the whole choice is made again and its cut
measured on the references that the resample left out (Efron & Tibshirani 1997).
"""

from collections.abc import Mapping
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
    """

    def __init__(
        self,
        deciles: Mapping[str, Ints],
        higher_is_better: Mapping[str, bool],
        good: NDArray[np.bool_],
        references: NDArray[Any],
    ) -> None:
        self.names = list(deciles)
        self.higher_is_better = dict(higher_is_better)
        group = numbered(references)
        self.references = int(group.max()) + 1 if len(group) else 0
        shape = (self.references, len(self.names), DECILES)
        self._judged, self._good = np.zeros(shape), np.zeros(shape)
        for i, name in enumerate(self.names):
            # From here on the best decile of each score is the first.
            rank = 9 - deciles[name] if self.higher_is_better[name] else deciles[name]
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
        rows = len(weights), len(self.names), DECILES
        good, judged = (
            (weights @ counts.reshape(self.references, -1)).reshape(rows)
            for counts in (self._good, self._judged)
        )
        return good, judged


def recommend(
    judged: Judged, wanted: float, *, count: int = RESAMPLES, seed: int = 1
) -> Cut | None:
    """The cut that keeps most deciles while its Wilson interval begins at `wanted` or above.

    Of several the one with the highest precision; if there is none, the cut that comes nearest.

    Returns:
        None if no score has a judged pair in its best decile.
    """
    if not judged.references:
        return None
    good, pairs = judged.weighted(np.ones((1, judged.references)))
    (best,), (reached,) = _choose(good, pairs, wanted)
    found = [values.reshape(-1)[best] for values in best_deciles(good, pairs)]
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
        judged=int(pairs[0, row, : column + 1].sum()),
        precision=share,
        wilson=(low, high),
        expected=expected,
        chance=float(np.mean(found_there >= wanted)) if expected else None,
    )


def measure(judged: Judged, cut: Cut) -> float:
    """The precision of a cut on other judged pairs: the mean over its deciles with such pairs."""
    good, pairs = judged.weighted(np.ones((1, judged.references)))
    row = judged.names.index(cut.score)
    best = np.array([row * DECILES + len(cut.deciles) - 1])
    return float(_measured(good, pairs, best)[0])


def _choose(good: Floats, pairs: Floats, wanted: float) -> tuple[Ints, NDArray[np.bool_]]:
    """The number of the chosen cut, score × 10 + deciles − 1, for each resample [b]."""
    share, low, _ = best_deciles(good, pairs)
    low = np.where(np.isfinite(low), low, -1.0)
    reached = low >= wanted
    size = np.arange(1, DECILES + 1)  # a share is at most 1, so more deciles come first
    value = np.where(reached, size + np.nan_to_num(share), low)
    chosen = value.reshape(len(value), -1).argmax(1)
    return chosen, np.asarray(reached.any((1, 2)))


def _measured(good: Floats, pairs: Floats, chosen: Ints) -> Floats:
    """The precision of cut `chosen` [b]; NaN where no pair of it is judged."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = good / pairs
        with_pairs = np.isfinite(share)
        found = np.cumsum(np.where(with_pairs, share, 0), -1) / np.cumsum(with_pairs, -1)
    return np.asarray(found.reshape(len(found), -1)[np.arange(len(chosen)), chosen])


def _on_references_left_out(judged: Judged, wanted: float, count: int, seed: int) -> Floats:
    """The precision of the cut that each resample chooses, on the references it left out."""
    found = []
    for times in resamples(judged.references, count, seed):
        chosen, _ = _choose(*judged.weighted(times), wanted)
        found.append(_measured(*judged.weighted((times == 0).astype(float)), chosen))
    return np.concatenate(found)
