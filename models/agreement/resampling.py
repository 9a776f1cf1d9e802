"""Bootstrap over groups of rows (Efron 1979; cluster bootstrap: Davison & Hinkley 1997, 3.8)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RESAMPLES = 1_000
CONFIDENCE = 0.95
_AT_ONCE = 50  # resamples whose arrays are in memory together


def numbered(groups: NDArray[Any]) -> Ints:
    """The number of each row's group, from 0: int [n]."""
    return np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int64)


def resamples(groups: int, count: int, seed: int) -> Iterator[Floats]:
    """How often each group is drawn in each of `count` resamples: blocks of [b, groups]."""
    random = np.random.default_rng(seed)
    for start in range(0, count, _AT_ONCE):
        drawn = random.integers(0, groups, (min(_AT_ONCE, count - start), groups))
        offsets = groups * np.arange(len(drawn))[:, None]
        yield (
            np.bincount((drawn + offsets).ravel(), minlength=drawn.size)
            .reshape(drawn.shape)
            .astype(np.float64)
        )


def percentile_interval(values: Floats) -> tuple[float, float] | None:
    """The middle `CONFIDENCE` of the values that are numbers; None if less than half are."""
    found = values[np.isfinite(values)]
    if 2 * len(found) < len(values) or not len(found):
        return None
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(found, [tail, 100 - tail])
    return float(low), float(high)
