"""Weights with which judged pairs have the deciles of the pairs that they stand for."""

from collections.abc import Sequence

import numpy as np

from paraloom.models.agreement.precision import DECILES
from paraloom.models.agreement.resampling import Floats, Ints

_HEAVIEST = 3.0  # times the mean: heavier weights would leave the result to a few pairs


def weights_of(decile: Ints, rows: Sequence[int]) -> Floats:
    """Weights [n], 1 on average, by post-stratification (Holt & Smith 1979).

    The weighted share of each decile that has judged pairs is that of its rows, unless the limit
    `_HEAVIEST` forbids it. (Weights for the deciles of all scores together, by raking, leave so few
    effective pairs in a run with many copies that their precisions mislead.)

    Args:
        decile: of the judged pairs by a score: [n], 0 to 9.
        rows: of the run in each decile: [10].
    """
    judged = np.bincount(decile, minlength=DECILES)
    of_decile = np.asarray(rows, float) / np.maximum(judged, 1)
    weights = of_decile[decile]
    if not weights.sum():
        return np.ones(len(decile))
    trimmed = np.minimum(weights / weights.mean(), _HEAVIEST)
    return np.asarray(trimmed / trimmed.mean())
