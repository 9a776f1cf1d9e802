"""Reads a run's part files for the report: one pass, one part file in memory at a time.

The axes follow from the decile bounds in the manifest, so counting needs no pass to find them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Deciles, read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.pipeline.judging.describe import neighbouring
from paraloom.pipeline.records import SelectSection
from paraloom.pipeline.stage import shards_of

BINS = 40
CELLS = 32  # a side of the density's grid
WORDING = ("content_overlap", "trigram_overlap", "unigram_f1", "edit_distance")
_MEANING = ("sentence_similarity", "cross_encoder", "paragram_similarity", "translation_score")

Array = npt.NDArray[Any]
Interval = tuple[float, float]
Region = dict[str, list[Interval]]
"""The scores of a selected pair: each score named lies in one of its intervals."""


@dataclass
class Histogram:
    """Counts of one score; values beyond the axis count in the outermost bins."""

    edges: Array  # float64 [BINS + 1]
    bounds: list[float]  # lowest score of deciles 1 to 9; empty if there is no pair
    pairs: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))
    """Int64 [BINS]: all scored pairs, and the pairs of the corpus."""
    corpus: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))
    beyond: int = 0  # pairs with a score beyond the axis

    @property
    def has_empty_width(self) -> bool:
        """Whether a decile begins and ends at the same value."""
        ends = [self.edges[0], *self.bounds, self.edges[-1]]
        return any(low == high for low, high in pairwise(ends))


@dataclass
class Density:
    """Counts over two scores: int64 [x, y], all pairs and the pairs of the corpus."""

    x: str
    y: str
    x_edges: Array
    y_edges: Array
    pairs: Array = field(default_factory=lambda: np.zeros((CELLS, CELLS), np.int64))
    corpus: Array = field(default_factory=lambda: np.zeros((CELLS, CELLS), np.int64))

    @property
    def correlation(self) -> float | None:
        """Pearson's r of the two scores over the cells; None if one score is constant."""
        if min(np.count_nonzero(self.pairs.sum(axis)) for axis in (0, 1)) < 2:
            return None
        x, y = np.indices(self.pairs.shape)
        covariance = np.cov(x.ravel(), y.ravel(), fweights=self.pairs.ravel())
        return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


@dataclass
class ScoreFigures:
    """What the report reads from the part files."""

    histograms: dict[str, Histogram]  # by score
    density: Density | None  # None if there are fewer than two scores
    with_corpus: bool  # whether the corpus was counted too


def read_scores(
    folder: str,
    deciles: Mapping[str, Deciles],
    *,
    with_corpus: bool,
    stage: str,
    limited: Sequence[str] = (),
) -> ScoreFigures:
    """Read the run in `folder`, whose `stage` has the pairs with these deciles; `limited` are the
    scores that select."""
    histograms = {
        score: Histogram(edges=axis(summary, BINS), bounds=bounds(summary))
        for score, summary in deciles.items()
    }
    density = _density(deciles, limited)
    for of, into in ((stage, "pairs"), *([("select", "corpus")] if with_corpus else [])):
        for shard in shards_of(folder, of):
            _count(read_shard(shard, list(deciles)), histograms, density, into)
    return ScoreFigures(histograms=histograms, density=density, with_corpus=with_corpus)


def bounds(summary: Deciles) -> list[float]:
    """The lowest score of deciles 1 to 9; an empty one (fewer than 10 rows) begins with the next.

    >>> highest = [None, 0.1, *[0.3] * 8]
    >>> bounds(Deciles(rows=[], lowest=[None, 0.1, None, 0.2, *[0.3] * 6], highest=highest))
    [0.1, 0.2, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]
    """
    following = max((v for v in summary.highest if v is not None), default=None)
    found = []
    for value in reversed(summary.lowest[1:]):
        following = following if value is None else value
        found.append(following)
    return [value for value in reversed(found) if value is not None]


def axis(summary: Deciles, bins: int) -> Array:
    """Edges of equal bins over a score; a long tail is cut, so that the middle stays visible.

    The axis ends where the values end, or beyond the outer decile bounds by 1.5 times their
    distance if that is nearer. The edges are float64 [bins + 1], increasing.
    """
    values = [v for v in (*summary.lowest, *summary.highest) if v is not None]
    if not values:
        return np.linspace(0, 1, bins + 1)
    low, high = min(values), max(values)
    inner = bounds(summary) or [low]
    reach = 1.5 * (max(inner) - min(inner))
    if reach > 0:
        low, high = max(low, min(inner) - reach), min(high, max(inner) + reach)
    if high <= low:
        low, high = low - 0.5, low + 0.5
    return np.linspace(low, high, bins + 1)


def regions(select: SelectSection, deciles: Mapping[str, Deciles]) -> Region:
    """The selected values of each score that the deciles and predicates of a configuration limit.

    Predicates on tokens limit no score and are left out.
    """
    predicates = [Predicate.parse(text) for text in select.where]
    selected: Region = {}
    for score, summary in deciles.items():
        inside = np.ones(10, bool)
        if select.by == score and select.deciles is not None:
            inside &= np.isin(np.arange(10), select.deciles)
        low, high = -np.inf, np.inf
        for predicate in predicates:
            if predicate.column == schema.decile(score):
                inside &= predicate.holds(np.arange(10))
            elif predicate.column == score:
                low = max(low, predicate.numbers[0]) if predicate.operator[0] != "<" else low
                high = min(high, predicate.numbers[-1]) if predicate.operator[0] != ">" else high
        spans = _spans(inside, summary) if not inside.all() else [(-np.inf, np.inf)]
        spans = [(max(a, low), min(b, high)) for a, b in spans]
        if spans != [(-np.inf, np.inf)]:
            selected[score] = [(a, b) for a, b in spans if a <= b]
    return selected


def _spans(inside: Array, summary: Deciles) -> list[Interval]:
    """From the lowest to the highest value of each range of neighbouring deciles."""
    spans = []
    for first, last in neighbouring(np.flatnonzero(inside).tolist()):
        lowest = [v for v in summary.lowest[first : last + 1] if v is not None]
        highest = [v for v in summary.highest[first : last + 1] if v is not None]
        if lowest and highest:
            spans.append((lowest[0], highest[-1]))
    return spans


def axes(scores: Collection[str], limited: Sequence[str]) -> tuple[str, str] | None:
    """A score of the wording, on which pairs differ, and one of meaning: the best one of those that
    select (`limited`). Other scores where there are no such; None of fewer than two.

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


def _density(deciles: Mapping[str, Deciles], limited: Sequence[str] = ()) -> Density | None:
    if found := axes(deciles, limited):
        x, y = found
        return Density(x=x, y=y, x_edges=axis(deciles[x], CELLS), y_edges=axis(deciles[y], CELLS))
    return None


def _count(
    table: pa.Table, histograms: dict[str, Histogram], density: Density | None, into: str
) -> None:
    for score, histogram in histograms.items():
        values, edges = table[score].to_numpy(), histogram.edges
        counts = getattr(histogram, into)
        counts += np.histogram(_clipped(values, edges), BINS, (edges[0], edges[-1]))[0]
        if into == "pairs":
            low, high = edges[[0, -1]].astype(np.float32)
            histogram.beyond += int(np.count_nonzero((values < low) | (values > high)))
    if density is not None:
        sides = ((density.x, density.x_edges), (density.y, density.y_edges))
        x, y = (_clipped(table[name].to_numpy(), edges) for name, edges in sides)
        ends = [edges[[0, -1]] for _, edges in sides]
        counts = getattr(density, into)
        counts += np.histogram2d(x, y, CELLS, ends)[0].astype(np.int64)


def _clipped(values: Array, edges: Array) -> Array:
    """Values beyond the axis count in the outermost bins."""
    return np.clip(values.astype(np.float64), edges[0], edges[-1])
