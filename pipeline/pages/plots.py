"""Data of the report's plots. Templates draw the plots as SVG, in units of about one pixel."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraloom.beam_jobs.transforms.shares import Deciles

WIDTH = 340  # width of a plot, in units
_SHADES = 6
BINS = 40
CELLS = 32  # a density has CELLS × CELLS cells
WORDING = ("content_overlap", "trigram_overlap", "unigram_f1", "edit_distance")
_MEANING = ("sentence_similarity", "cross_encoder", "paragram_similarity", "translation_score")

Array = npt.NDArray[Any]


class Histogram(NamedTuple):
    """The share of a score's values in each bin."""

    edges: Array  # float64 [BINS + 1]
    pairs: Array  # shares for the pairs of the run: float64 [BINS]
    corpus: Array  # shares for the corpus, or zeros without a corpus: float64 [BINS]
    bounds: list[float]  # lowest score of each decile except the first


class Density(NamedTuple):
    """The number of pairs in each cell of a grid over two scores."""

    x: str
    y: str
    x_edges: Array
    y_edges: Array
    pairs: Array  # int64 [x, y]
    corpus: Array


def histogram(pairs: Array, corpus: Array, deciles: Deciles) -> Histogram:
    """Return the histogram of a score. `deciles` describes all pairs of the run."""
    edges = axis(pairs, BINS)
    shares = [
        np.histogram(_within(values, edges), edges)[0] / max(len(values), 1)
        for values in (pairs, corpus)
    ]
    bounds = [low for low in deciles.lowest[1:] if low is not None]
    return Histogram(edges, shares[0], shares[1], bounds)


def density(pairs: pa.Table, corpus: pa.Table, both: tuple[str, str]) -> Density:
    """Count the pairs of the run and of the corpus in a grid over two scores."""
    edges = [axis(pairs[name].to_numpy(), CELLS) for name in both]

    def count(table: pa.Table) -> Array:
        columns = (table[name].to_numpy() for name in both)
        x, y = map(_within, columns, edges)
        return np.histogram2d(x, y, edges)[0].astype(np.int64)

    return Density(both[0], both[1], edges[0], edges[1], count(pairs), count(corpus))


def axis(values: Array, bins: int) -> Array:
    """Return the edges of equal bins for values: float64 [bins + 1]. Long tails are cut off."""
    low, first, last, high = np.quantile(values.astype(np.float64), [0, 0.1, 0.9, 1])
    if (reach := 1.5 * (last - first)) > 0:
        low, high = max(low, first - reach), min(high, last + reach)
    if high <= low:
        low, high = low - 0.5, low + 0.5
    return np.linspace(low, high, bins + 1)


def axes(scores: Collection[str], limited: Sequence[str]) -> tuple[str, str] | None:
    """Choose a score of wording and a score of meaning, preferably among the scores in `limited`.

    `limited` contains the scores that the selection restricts. A score in `limited` that does not
    measure wording counts as a score of meaning. If there is no score of one of the two kinds,
    another score is used. With fewer than two scores, the result is None.

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
    names = dict.fromkeys((*wording[:1], *meaning, *scores))
    found = [name for name in names if name in scores]
    return (found[0], found[1]) if len(found) > 1 else None


def _within(values: Array, edges: Array) -> Array:
    return np.clip(values.astype(np.float64), edges[0], edges[-1])


class Scale(NamedTuple):
    """A linear map from values to units of a plot."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the position of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def clamped(self, value: float) -> float:
        """Return the position of a value, limited to the ends of the scale."""
        return self.at(min(max(value, self.low), self.high))


def padded(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a scale from the lowest to the highest value, with padding at both ends."""
    found = [*map(float, values)]
    room = 0.08 * (max(found) - min(found)) or 0.05
    return Scale(min(found) - room, max(found) + room, start, end)


def shades(data: Density, counts: Array) -> list[tuple[int, list[list[int]]]]:
    """For each shade, return the least count that gets it, and the indices [x, y] of its cells."""
    most = max(int(data.pairs.max()), 1)
    steps = np.unique(np.geomspace(1, most, _SHADES, endpoint=False).round().astype(int))
    level = np.searchsorted(steps, counts, side="right")
    return [(int(least), np.argwhere(level == k).tolist()) for k, least in enumerate(steps, 1)]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most` + 1 round numbers between two values.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    low, high = sorted((low, high))
    if not high > low:
        return [low]
    raw = (high - low) / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def short_number(value: float) -> str:
    """Format a number for a tick of an axis.

    >>> [short_number(v) for v in (0.25, -3.0, 1500, 20_000_000)]
    ['0.25', '−3', '1.5k', '20M']
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")
