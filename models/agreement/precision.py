"""The share of good pairs in deciles of a score, with Wilson intervals; weights of judged pairs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from paraloom.models.agreement.resampling import CONFIDENCE, Floats, Ints

DECILES = 10
_HEAVIEST = 3.0  # times the mean: heavier weights would leave the result to a few pairs
_Z = float(ndtri((1 + CONFIDENCE) / 2))


class Shares(NamedTuple):
    """Shares and the ends of their intervals, in arrays of one shape; NaN without judged pairs."""

    share: Floats
    low: Floats
    high: Floats


def exact_deciles(values: NDArray[Any]) -> Ints:
    """The tenth of each value, 0 the lowest; ties are broken by position, as sizes are exact.

    >>> exact_deciles(np.array([3.0, 1.0, 2.0, 2.0])).tolist()
    [9, 2, 4, 7]
    """
    order = np.argsort(values, kind="stable")
    decile = np.empty(len(order), np.int64)
    # As `paraloom.beam_jobs.bucket`:
    bounds = [k * len(order) // DECILES for k in range(1, DECILES)]
    decile[order] = np.searchsorted(bounds, np.arange(len(order)), side="right")
    return decile


def wilson(share: Floats, pairs: Floats) -> tuple[Floats, Floats]:
    """The ends of Wilson's score interval (Wilson 1927) of shares among numbers of pairs.

    `pairs` may be fractional: an effective number.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = _Z**2 / pairs
        middle = share + spread / 2
        half = _Z * np.sqrt(share * (1 - share) / pairs + spread / (4 * pairs))
        return (middle - half) / (1 + spread), (middle + half) / (1 + spread)


def by_decile(good: Floats, judged: Floats) -> Shares:
    """The shares of good pairs in each decile, from the numbers of good and of judged pairs."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = good / judged
    return Shares(share, *wilson(share, judged))


def best_deciles(good: Floats, judged: Floats, squares: Floats, rows: Floats) -> Shares:
    """The shares in the best 1, 2, … deciles together: arrays are [..., 10], the best decile first.

    Shares are weighted; intervals use Kish's effective sample size (Kish 1965). A decile
    that has rows but no judged pair ends the deciles that are measured.

    `good` and `judged` are sums of the weights of good and of judged pairs, `squares` sums of the
    squares of the latter; `rows` are the run's.
    """
    measured = np.logical_and.accumulate((judged > 0) | (rows == 0), axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.cumsum(judged, axis=-1)
        share = np.where(measured, np.cumsum(good, axis=-1) / total, np.nan)
        pairs = total**2 / np.cumsum(squares, axis=-1)
    return Shares(share, *wilson(share, pairs))


def weights_of(decile: Ints, rows: Sequence[int]) -> Floats:
    """Weights [n], 1 on average, by post-stratification (Holt & Smith 1979).

    The weighted share of each decile that has judged pairs is that of its rows, unless the limit
    `_HEAVIEST` forbids it. (Weights for the deciles of all scores together, by raking, leave so few
    effective pairs in a run with many copies that their precisions mislead.)

    `decile` [n] has the deciles (0 to 9) of the judged pairs by a score, `rows` [10] the number of
    rows of the run in each decile.
    """
    judged = np.bincount(decile, minlength=DECILES)
    of_decile = np.asarray(rows, float) / np.maximum(judged, 1)
    weights = of_decile[decile]
    if not weights.sum():
        return np.ones(len(decile))
    trimmed = np.minimum(weights / weights.mean(), _HEAVIEST)
    return np.asarray(trimmed / trimmed.mean())
