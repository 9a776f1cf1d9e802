"""Comparison of sentence vectors, and the models that an evaluation compares."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Vectors = NDArray[np.floating]  # vectors of n sentences, [n, dim]
Scores = NDArray[np.float64]  # scores of n pairs, [n]
Embed = Callable[[pa.StringArray], Vectors]  # from sentences [n] to vectors
Compare = Callable[[Vectors, Vectors], Scores]
"""Maps the vectors of n first and of n second sentences to the scores of n pairs."""


def cosines(a: Vectors, b: Vectors) -> Scores:
    """Row-wise cosines; 0 if a vector is zero (a sentence without tokens)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = np.einsum("ij,ij->i", a, b)
    found: Scores = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return found


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1, [n, dim]; zero rows remain zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0))


def dots(a: Vectors, b: Vectors) -> Scores:
    """Row-wise dot products."""
    found: Scores = np.einsum("ij,ij->i", np.asarray(a, np.float64), np.asarray(b, np.float64))
    return found


class ComparedModel(NamedTuple):
    """A model to evaluate."""

    name: str
    embed: Embed
    compare: Compare = cosines
    scale: tuple[float, float] | None = None
    """Ends of the label scale, if scores are predicted labels."""
