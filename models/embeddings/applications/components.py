"""Principal components of sentence vectors (Mueller & Thyagarajan 2016, 4.3)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Components(NamedTuple):
    """Sentences in the directions of largest variance."""

    points: NDArray[np.float64]  # [n, 2]
    shares: NDArray[np.float64]  # [2]: share of the variance in each direction


def principal_components(vectors: NDArray[np.floating]) -> Components:
    """The first two principal components of n vectors.

    The largest weight of each direction is positive, so that plots are never mirrored.
    """
    from sklearn.decomposition import PCA

    if min(vectors.shape) < 2:
        raise ValueError(f"{vectors.shape[0]} vectors of length {vectors.shape[1]} are too few")
    pca = PCA(2, svd_solver="full")
    with np.errstate(invalid="ignore"):  # shares of no variance
        points = pca.fit_transform(np.asarray(vectors, np.float64))
    return Components(points, np.nan_to_num(pca.explained_variance_ratio_))


def distant_rows(points: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """At most `count` rows of [n, k], each of them farthest from those selected before.

    The first is farthest from the mean. No two of the points are equal.
    """
    chosen: list[int] = []
    distances = np.linalg.norm(points - points.mean(axis=0), axis=1)
    while len(chosen) < count and distances.max(initial=0.0) > 0:
        chosen.append(int(distances.argmax()))
        to_last = np.linalg.norm(points - points[chosen[-1]], axis=1)
        distances = to_last if len(chosen) == 1 else np.minimum(distances, to_last)
    return np.array(chosen, np.int64)
