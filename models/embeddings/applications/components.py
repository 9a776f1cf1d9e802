"""What sentence vectors tell apart: single units, principal components (Mueller & T. 2016, 4.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Components(NamedTuple):
    """Sentences along the directions in which they differ most."""

    places: np.ndarray
    """float64 [n, k]"""
    shares: np.ndarray
    """float64 [k]: what share of the variance lies in each direction"""


def principal_components(vectors: np.ndarray, count: int = 2) -> Components:
    """The principal components of n vectors.

    The largest of a direction's weights is positive, so that a picture never comes out mirrored.

    Raises:
        ValueError: fewer vectors or numbers in them than components.
    """
    if min(vectors.shape) < count:
        raise ValueError(f"{vectors.shape[0]} vectors of length {vectors.shape[1]} are too few")
    centred = np.asarray(vectors, np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    directions = directions[:count] * signs[:count, None]
    total = max(float((sizes**2).sum()), 1e-300)
    return Components(centred @ directions.T, sizes[:count] ** 2 / total)


def spread_rows(places: np.ndarray, count: int) -> np.ndarray:
    """Rows of [n, k] that stand far from each other: each next is farthest from those before.

    The first is farthest from the mean. At most `count`, and none that stands where another does.
    """
    chosen: list[int] = []
    distances = np.linalg.norm(places - places.mean(axis=0), axis=1)
    while len(chosen) < count and distances.max(initial=0.0) > 0:
        chosen.append(int(distances.argmax()))
        to_last = np.linalg.norm(places - places[chosen[-1]], axis=1)
        distances = to_last if len(chosen) == 1 else np.minimum(distances, to_last)
    return np.array(chosen, np.int64)
