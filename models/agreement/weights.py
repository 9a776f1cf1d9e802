"""Weights with which judged pairs have the deciles of the pairs that they stand for."""

from collections.abc import Mapping, Sequence

import numpy as np

from models.agreement.precision import DECILES
from models.agreement.resampling import Floats, Ints

_ROUNDS = 50
_CLOSE = 1e-6
_HEAVIEST = 3.0  # times the mean: heavier weights would leave the result to a few pairs


def rake(deciles: Mapping[str, Ints], rows: Mapping[str, Sequence[int]]) -> Floats:
    """Weights [n], 1 on average, by raking (Deming & Stephan 1940).

    The weighted share of each decile of each score is then that of its rows, as nearly as the
    judged pairs and the limit `_HEAVIEST` allow.

    Args:
        deciles: of the judged pairs by each score: [n], 0 to 9.
        rows: of the run in each decile of each score: [10].
    """
    count = len(next(iter(deciles.values()), ()))
    weights = np.ones(count)
    for _ in range(_ROUNDS if count else 0):
        before = weights
        for name, decile in deciles.items():
            present = np.bincount(decile, weights, minlength=DECILES)
            wanted = np.where(present > 0, np.asarray(rows[name], float), 0)
            if not wanted.any():
                continue
            wanted *= count / wanted.sum()
            weights = weights * (wanted / np.where(present > 0, present, 1))[decile]
        if np.abs(weights - before).max() < _CLOSE:
            break
    trimmed = np.minimum(weights, _HEAVIEST)
    return trimmed / trimmed.mean() if count else weights
