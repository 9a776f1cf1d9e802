"""Functions that compare sentence vectors, and the type of a model that is evaluated."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Vectors = NDArray[np.floating]  # vectors of n sentences, [n, dim]
Scores = NDArray[np.float64]  # scores of n pairs, [n]
Embed = Callable[[pa.StringArray], Vectors]  # function from n sentences to vectors
Compare = Callable[[Vectors, Vectors], Scores]
"""A function that computes scores of n pairs from the vectors of both sides."""


def cosines(a: Vectors, b: Vectors) -> Scores:
    """Return the cosine of row i of `a` and row i of `b`, [n], or 0 if a row is zero."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = dots(a, b)
    found: Scores = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return found


def unit(vectors: Vectors) -> Vectors:
    """Return the rows scaled to length 1, [n, dim]. Zero rows remain zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0))


def dots(a: Vectors, b: Vectors) -> Scores:
    """Return the dot product of row i of `a` and row i of `b`, [n]."""
    found: Scores = np.einsum("ij,ij->i", np.asarray(a, np.float64), np.asarray(b, np.float64))
    return found


class ComparedModel(NamedTuple):
    """A model to evaluate, with the functions that compute its vectors and scores."""

    name: str
    embed: Embed
    compare: Compare = cosines
    scale: tuple[float, float] | None = None
    """Lowest and highest label if the scores are predicted labels, otherwise None."""
