"""How well scores agree with people, and the cut of a score that has a wanted precision.

Everything here is a function of arrays: the scores of n pairs and their deciles, the labels that
people gave them (0 to 100), and the reference of each pair. Pairs of one reference resemble each
other, so all resampling is of references (cluster bootstrap: Davison & Hinkley 1997, 3.8).

A cut keeps the best deciles of a score. The choice takes the best of many cuts, so the precision of
the chosen one on other references is lower and varies more than its Wilson interval says.
`recommend` therefore states another interval: of many resamples of the references, in each of which
the whole choice is made again and its cut measured on the references that the resample left out
(Efron & Tibshirani 1997).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

DECILES = 10
ENOUGH = 20
"""The fewest references for an interval by resampling, and judged pairs in a recommended cut or of
a median; judging.md says why."""
RESAMPLES = 1_000
_AT_ONCE = 50  # resamples whose arrays are in memory together
_CONFIDENCE = 0.95
_Z = float(ndtri((1 + _CONFIDENCE) / 2))
_HEAVIEST = 3.0  # times the mean: heavier weights would leave the result to a few pairs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float, float]


class Shares(NamedTuple):
    """Shares of good pairs in the best 1, 2, … deciles of each score, and the ends of their
    Wilson intervals: [b, scores, 10] each."""

    share: Floats
    low: Floats
    high: Floats
    measured: NDArray[np.bool_]  # False where a decile has rows, but no judged pair
    enough: NDArray[np.bool_]  # whether as many are judged as a recommendation needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The best deciles of a score."""

    score: str
    deciles: tuple[int, ...]
    wanted: float  # precision
    reached: bool
    """Whether enough pairs are judged, and the Wilson interval begins at `wanted` or above."""
    rows: int  # in the deciles
    judged: int
    good: int | None = None  # of the judged ones; earlier versions did not record it
    precision: float  # share of good pairs, with weights
    wilson: Interval
    expected: Interval | None
    """The interval of the precision of such a choice on references that it has not seen; None with
    too few references."""
    chance: float | None
    """Share of the resamples in which the precision on the references left out was at least
    `wanted`; None as `expected`."""


class Judged:
    """n judged pairs, summed up by reference and decile, with weights as `weights_of` gives them.

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
        self.deciles, self.higher_is_better, self.good = deciles, higher_is_better, good
        self.names = list(deciles)
        group = _numbered(references)
        self.references = int(group.max(initial=-1)) + 1
        # From here on the best decile of each score is the first.
        self.rows = np.zeros((len(self.names), DECILES))
        self._sums = np.zeros((self.references, 3, len(self.names), DECILES))
        for i, name in enumerate(self.names):
            highest = higher_is_better[name]
            self.rows[i] = rows[name][:: -1 if highest else 1]
            decile = 9 - deciles[name] if highest else deciles[name]
            weights = weights_of(deciles[name], rows[name])
            for k, values in enumerate((weights * good, weights, weights**2)):
                np.add.at(self._sums[:, k, i], (group, decile), values)

    def shares(self, times: Floats | None = None) -> Shares:
        """The shares if references count so many times [b, references]; by default once.

        Shares are weighted; intervals use Kish's effective sample size (Kish 1965).
        """
        times = np.ones((1, self.references)) if times is None else times
        shape = 3, len(self.names), DECILES
        sums = times @ self._sums.reshape(self.references, int(np.prod(shape)))
        good, judged, squares = np.moveaxis(sums.reshape(len(times), *shape), 1, 0)
        total = judged.cumsum(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            share, pairs = good.cumsum(-1) / total, total**2 / squares.cumsum(-1)
        measured = np.logical_and.accumulate((judged > 0) | (self.rows == 0), axis=-1) & (total > 0)
        return Shares(share, *wilson(share, pairs), measured, pairs > ENOUGH - 1e-6)


def recommend(
    judged: Judged, wanted: float, *, count: int = RESAMPLES, seed: int = 1
) -> Cut | None:
    """The cut that keeps most rows while its Wilson interval begins at `wanted` or above.

    Of several that keep the same percentage of all rows, the one with the highest precision; if
    there is none, the cut with the interval that begins highest. None if no score has a judged pair
    in its best decile with rows.
    """
    found = judged.shares()
    (best,), (reached,) = _choose(found, judged.rows, wanted)
    row, column = divmod(int(best), DECILES)
    if not found.measured[0, row, column]:
        return None
    share, low, high = (float(of[0, row, column]) for of in found[:3])
    name = judged.names[row]
    highest = judged.higher_is_better[name]
    deciles = tuple(range(9 - column, 10) if highest else range(column + 1))
    good = judged.good[np.isin(judged.deciles[name], deciles)]
    elsewhere = _on_references_left_out(judged, wanted, count, seed)
    expected = percentile_interval(elsewhere) if judged.references >= ENOUGH else None
    return Cut(
        score=name,
        deciles=deciles,
        wanted=wanted,
        reached=bool(reached),
        rows=int(judged.rows[row, : column + 1].sum()),
        judged=len(good),
        good=int(good.sum()),
        precision=share,
        wilson=(low, high),
        expected=expected,
        chance=float(np.mean(elsewhere[np.isfinite(elsewhere)] >= wanted)) if expected else None,
    )


def _choose(shares: Shares, rows: Floats, wanted: float) -> tuple[Ints, NDArray[np.bool_]]:
    """The number of the chosen cut, score × 10 + deciles − 1, for each resample [b]; whether it
    has the wanted precision."""
    low = np.where(shares.measured, shares.low, -1.0)
    reached = (low >= wanted) & shares.enough
    percent = np.floor(100 * rows.cumsum(-1) / max(rows.sum(-1).max(), 1))
    value = np.where(reached, 1 + percent + np.nan_to_num(shares.share) / 2, low)
    return value.reshape(len(value), -1).argmax(1), np.asarray(reached.any((1, 2)))


def _on_references_left_out(judged: Judged, wanted: float, count: int, seed: int) -> Floats:
    """The precision of the cut that each resample chooses, on the references it left out; NaN
    where no pair of it is judged there."""
    found = []
    for times in resamples(judged.references, count, seed):
        chosen, _ = _choose(judged.shares(times), judged.rows, wanted)
        shares = judged.shares((times == 0).astype(float)).share.reshape(len(times), -1)
        found.append(shares[np.arange(len(times)), chosen])
    return np.concatenate(found)


def spearman(
    scores: Mapping[str, NDArray[Any]],
    labels: NDArray[Any],
    references: NDArray[Any],
    *,
    count: int = RESAMPLES,
    seed: int = 1,
) -> dict[str, tuple[float | None, Interval | None]]:
    """The correlation of each score [n] with the labels [n], and its 95% interval with `count`
    resamples of references; None where undefined (constant values, fewer references than ENOUGH).
    """
    if len(labels) < 2:
        return dict.fromkeys(scores, (None, None))
    columns = np.column_stack([*scores.values(), labels])
    group = _numbered(references)
    groups = int(group.max()) + 1
    drawn = np.array(
        [
            _with_the_last(columns.repeat(times[group].astype(int), axis=0))
            for block in resamples(groups, count, seed)
            for times in block
        ]
    )  # [count, scores]
    return {
        name: (
            value if np.isfinite(value) else None,
            percentile_interval(of_name) if groups >= ENOUGH else None,
        )
        for name, value, of_name in zip(
            scores, _with_the_last(columns).tolist(), drawn.T, strict=True
        )
    }


def _with_the_last(columns: Floats) -> Floats:
    """Spearman's rho of every column but the last with the last; NaN of constant ones."""
    from scipy.stats import rankdata  # late: it takes most of a second

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.corrcoef(rankdata(columns, axis=0), rowvar=False)[-1, :-1])


def pearson_interval(pearson: float, pairs: int) -> Interval | None:
    """The 95% interval of a correlation × 100 by Fisher's transformation; None of few pairs."""
    if pairs < ENOUGH or abs(pearson) >= 100:
        return None
    middle, half = np.arctanh(pearson / 100), _Z / np.sqrt(pairs - 3)
    return float(100 * np.tanh(middle - half)), float(100 * np.tanh(middle + half))


def resamples(groups: int, count: int, seed: int) -> Iterator[Floats]:
    """How often each group is drawn in each of `count` resamples: blocks of [b, groups]."""
    random = np.random.default_rng(seed)
    for start in range(0, count, _AT_ONCE):
        size = min(_AT_ONCE, count - start)
        yield random.multinomial(groups, np.full(groups, 1 / groups), size).astype(np.float64)


def percentile_interval(values: Floats) -> Interval | None:
    """The middle 95% of the values that are numbers; None if less than half are."""
    found = values[np.isfinite(values)]
    if 2 * len(found) < len(values) or not len(found):
        return None
    tail = 50 * (1 - _CONFIDENCE)
    low, high = np.percentile(found, [tail, 100 - tail])
    return float(low), float(high)


def wilson(share: Any, pairs: Any) -> tuple[Any, Any]:
    """The ends of Wilson's 95% interval (Wilson 1927) of shares among numbers of pairs.

    `pairs` may be fractional, an effective number: scipy's interval takes whole numbers only.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = _Z**2 / pairs
        middle = share + spread / 2
        half = _Z * np.sqrt(share * (1 - share) / pairs + spread / (4 * pairs))
        return (middle - half) / (1 + spread), (middle + half) / (1 + spread)


def weights_of(decile: Ints, rows: Sequence[int]) -> Floats:
    """Weights [n], 1 on average, by post-stratification (Holt & Smith 1979).

    The weighted share of each decile that has judged pairs is that of its rows, unless the limit
    `_HEAVIEST` forbids it. (Weights for the deciles of all scores together, by raking, leave so few
    effective pairs in a run with many copies that their precisions mislead.)

    `decile` [n] has the deciles (0 to 9) of the judged pairs by a score, `rows` [10] the number of
    rows of the run in each decile.
    """
    judged = np.bincount(decile, minlength=DECILES)
    weights = (np.asarray(rows, float) / np.maximum(judged, 1))[decile]
    if not weights.sum():
        return np.ones(len(decile))
    trimmed = np.minimum(weights / weights.mean(), _HEAVIEST)
    return np.asarray(trimmed / trimmed.mean())


def _numbered(groups: NDArray[Any]) -> Ints:
    """The number of each row's group, from 0: int [n]."""
    return np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int64)
