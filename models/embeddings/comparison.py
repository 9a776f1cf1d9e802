"""Functions that compare sentence vectors, and the models that an evaluation compares."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Vectors = NDArray[np.floating]  # vectors of n sentences, [n, dim]
Scores = NDArray[np.float64]  # scores of n pairs, [n]
Embed = Callable[[pa.StringArray], Vectors]  # from sentences [n] to vectors
Compare = Callable[[Vectors, Vectors], Scores]
"""A function from the vectors of n first and n second sentences to the scores of n pairs."""


def cosines(a: Vectors, b: Vectors) -> Scores:
    """Return the cosine of each pair of rows, or 0 where a vector is zero."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = dots(a, b)
    found: Scores = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return found


def unit(vectors: Vectors) -> Vectors:
    """Scale rows to length 1, [n, dim]. Zero rows remain zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0))


def dots(a: Vectors, b: Vectors) -> Scores:
    """Return the dot product of each pair of rows."""
    found: Scores = np.einsum("ij,ij->i", np.asarray(a, np.float64), np.asarray(b, np.float64))
    return found


class ComparedModel(NamedTuple):
    """A model to evaluate, with the functions that compute its vectors and scores."""

    name: str
    embed: Embed
    compare: Compare = cosines
    scale: tuple[float, float] | None = None
    """Lowest and highest label, if scores are predicted labels."""
