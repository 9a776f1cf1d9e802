"""Figures of the scores, counted over random pairs of a run and of its corpus."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraloom.beam_jobs.transforms.shares import Deciles

BINS = 40
CELLS = 32  # a side of the density's grid
WORDING = ("content_overlap", "trigram_overlap", "unigram_f1", "edit_distance")
_MEANING = ("sentence_similarity", "cross_encoder", "paragram_similarity", "translation_score")

Array = npt.NDArray[Any]


class Histogram(NamedTuple):
    """The shares of the values of one score; values beyond the axis are in the outermost bins."""

    edges: Array  # float64 [BINS + 1]
    pairs: Array  # of the run's pairs: float64 [BINS]
    corpus: Array  # of the corpus's pairs; zeros without a corpus
    bounds: list[float]  # lowest scores of all deciles but the first, over all pairs of the run

    @property
    def middles(self) -> list[float]:
        """The middles of the bins."""
        return [float(value) for value in (self.edges[1:] + self.edges[:-1]) / 2]


class Density(NamedTuple):
    """Counts over two scores: int64 [x, y]."""

    x: str
    y: str
    x_edges: Array
    y_edges: Array
    pairs: Array
    corpus: Array


def histogram(pairs: Array, corpus: Array, deciles: Deciles) -> Histogram:
    """Count the values of a score; `deciles` are the deciles of all pairs."""
    edges = axis(pairs, BINS)
    shares = [
        np.histogram(_within(values, edges), edges)[0] / max(len(values), 1)
        for values in (pairs, corpus)
    ]
    bounds = [low for low in deciles.lowest[1:] if low is not None]
    return Histogram(edges, shares[0], shares[1], bounds)


def density(pairs: pa.Table, corpus: pa.Table, both: tuple[str, str]) -> Density:
    """Count pairs over two scores."""
    edges = [axis(pairs[name].to_numpy(), CELLS) for name in both]

    def count(table: pa.Table) -> Array:
        columns = (table[name].to_numpy() for name in both)
        x, y = map(_within, columns, edges)
        return np.histogram2d(x, y, edges)[0].astype(np.int64)

    return Density(both[0], both[1], edges[0], edges[1], count(pairs), count(corpus))


def axis(values: Array, bins: int) -> Array:
    """Edges of equal bins over values: float64 [bins + 1], increasing.

    A long tail is cut, so that the middle stays visible: the axis reaches beyond the first and the
    last tenth of the values by at most 1.5 times the distance between them.
    """
    low, first, last, high = np.quantile(values.astype(np.float64), [0, 0.1, 0.9, 1])
    if (reach := 1.5 * (last - first)) > 0:
        low, high = max(low, first - reach), min(high, last + reach)
    if high <= low:
        low, high = low - 0.5, low + 0.5
    return np.linspace(low, high, bins + 1)


def axes(scores: Collection[str], limited: Sequence[str]) -> tuple[str, str] | None:
    """A score of wording and a score of meaning, if possible ones that select (`limited`). Other
    scores stand in for missing ones; None if there are fewer than two.

    >>> axes(["unigram_f1", "word_order", "translation_score"], ["word_order"])
    ('unigram_f1', 'word_order')
    >>> selecting = ["translation_score", "content_overlap", "paragram_similarity"]
    >>> axes(selecting, selecting)
    ('content_overlap', 'paragram_similarity')
    """
    limited = [name for name in limited if name in scores]
    wording = [name for name in (*limited, *WORDING) if name in WORDING and name in scores]
    meaning = [name for name in _MEANING if name in limited]
    meaning += [name for name in (*limited, *_MEANING) if name not in WORDING]
    names = dict.fromkeys((*wording[:1], *meaning, *scores))  # in this order, without repeats
    found = [name for name in names if name in scores]
    return (found[0], found[1]) if len(found) > 1 else None


def _within(values: Array, edges: Array) -> Array:
    """Values beyond the axis count in the outermost bins."""
    return np.clip(values.astype(np.float64), edges[0], edges[-1])
