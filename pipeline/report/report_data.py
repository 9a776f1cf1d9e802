"""What the report reads from a run's shards: one pass, one shard in memory at a time.

The axes come from the decile bounds in the manifest, so counting needs no pass to find them; pairs
are drawn by their rank within a decile, so texts are read only from shards that hold a drawn one.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from beam_jobs.io import schema, storage
from beam_jobs.io.shards import Receipt, read_shard, receipts
from beam_jobs.transforms.predicates import Predicate

BINS = 40
CELLS = 32  # a side of the density's grid
DRAWN = 4  # pairs of a decile
SHOWN_DECILES = {"lowest": 0, "middle": 5, "highest": 9}

Interval = tuple[float, float]
Region = dict[str, list[Interval]]
"""What a pair's scores must be to be selected: in one of the intervals of each score named."""


@dataclass
class Histogram:
    """Counts of one score; values beyond the axis count in the outermost bins.

    Attributes:
        edges: float64 [BINS + 1].
        pairs, corpus: int64 [BINS]: all scored pairs, and those of the corpus.
        bounds: lowest score of deciles 1 to 9; none if there is no pair.
        beyond: pairs whose score lies beyond the axis.
    """

    edges: np.ndarray
    bounds: list[float]
    pairs: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))
    corpus: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))
    beyond: int = 0


@dataclass
class Density:
    """Counts over two scores: int64 [x, y], all pairs and those of the corpus."""

    x: str
    y: str
    x_edges: np.ndarray
    y_edges: np.ndarray
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((CELLS, CELLS), np.int64))
    corpus: np.ndarray = field(default_factory=lambda: np.zeros((CELLS, CELLS), np.int64))


class Pair(NamedTuple):
    """A pair that was drawn to be looked at."""

    id: str
    source: str
    reference: str
    translation: str
    value: float


@dataclass
class Scores:
    """All that is read from the shards.

    Attributes:
        histograms: by score.
        density: None if there are fewer than two scores.
        pairs: score → decile → pairs drawn from it.
    """

    histograms: dict[str, Histogram]
    density: Density | None
    pairs: dict[str, dict[int, list[Pair]]]


def read_scores(
    folder: str,
    deciles: dict[str, dict[str, list]],
    *,
    seed: int,
    with_corpus: bool,
    stage: str = "bucket",
) -> Scores:
    """Read the run in `folder`.

    Args:
        deciles: as the manifest has them (`beam_jobs.bucket.summarise`).
        stage: where the pairs are, with these deciles.
        seed: of the draw.
        with_corpus: whether there is a corpus to count.

    Raises:
        UserError: a shard is not there or is damaged.
    """
    histograms = {
        score: Histogram(edges=axis(summary, BINS), bounds=bounds(summary))
        for score, summary in deciles.items()
    }
    density = _density(deciles)
    bucketed = receipts(storage.join(folder, stage))
    drawn = draw(bucketed, list(deciles), seed)
    found: dict[tuple[str, int], dict[int, Pair]] = defaultdict(dict)
    for index, table in enumerate(_tables(bucketed, deciles, drawn)):
        _count(table, histograms, density, "pairs")
        for score, decile, place, rank in drawn.get(index, []):
            found[score, decile][place] = _pair(table, score, decile, rank)
    if with_corpus:
        for table in _tables(receipts(storage.join(folder, "corpus")), deciles, {}):
            _count(table, histograms, density, "corpus")
    pairs: dict[str, dict[int, list[Pair]]] = {score: {} for score in deciles}
    for (score, decile), placed in found.items():
        pairs[score][decile] = [placed[place] for place in sorted(placed)]
    return Scores(histograms=histograms, density=density, pairs=pairs)


def bounds(summary: dict[str, list]) -> list[float]:
    """The lowest score of deciles 1 to 9; an empty one (fewer than 10 rows) begins with the next.

    >>> bounds({"lowest": [None, 0.1, None, 0.2, *[0.3] * 6], "highest": [None, 0.1, *[0.3] * 8]})
    [0.1, 0.2, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3]
    """
    following = max((v for v in summary["highest"] if v is not None), default=None)
    found = []
    for value in reversed(summary["lowest"][1:]):
        following = following if value is None else value
        found.append(following)
    return [value for value in reversed(found) if value is not None]


def axis(summary: dict[str, list], bins: int) -> np.ndarray:
    """Edges of equal bins over a score; a long tail is cut, so that the middle can be seen.

    The axis ends 1.5 times the distance of the outer decile bounds beyond them, or where the
    values end.

    Returns:
        float64 [bins + 1], increasing.
    """
    values = [v for name in ("lowest", "highest") for v in summary[name] if v is not None]
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


def regions(select: dict[str, Any], deciles: dict[str, dict[str, list]]) -> Region:
    """The selected values of the scores, from the deciles and conditions of a configuration.

    Scores without a condition are not in it; conditions on tokens are no matter of scores.
    """
    conditions = [Predicate.parse(text) for text in select["where"]]
    chosen: Region = {}
    for score, summary in deciles.items():
        kept = np.ones(10, bool)
        if select["by"] == score and select["deciles"] is not None:
            kept &= np.isin(np.arange(10), select["deciles"])
        low, high = -np.inf, np.inf
        for condition in conditions:
            if condition.column == schema.decile(score):
                kept &= condition.holds(np.arange(10))
            elif condition.column == score:
                low = max(low, condition.numbers[0]) if condition.operator[0] != "<" else low
                high = min(high, condition.numbers[-1]) if condition.operator[0] != ">" else high
        spans = _spans(kept, summary) if not kept.all() else [(-np.inf, np.inf)]
        spans = [(max(a, low), min(b, high)) for a, b in spans]
        if spans != [(-np.inf, np.inf)]:
            chosen[score] = [(a, b) for a, b in spans if a <= b]
    return chosen


def _spans(kept: np.ndarray, summary: dict[str, list]) -> list[Interval]:
    """From the lowest to the highest value of each run of neighbouring deciles."""
    spans: list[Interval] = []
    joins = False
    for decile in range(10):
        low, high = summary["lowest"][decile], summary["highest"][decile]
        if not kept[decile]:
            joins = False
        elif low is not None:
            spans.append((spans.pop()[0] if joins else low, high))
            joins = True
    return spans


def draw(
    receipts: Sequence[Receipt], scores: Iterable[str], seed: int
) -> dict[int, list[tuple[str, int, int, int]]]:
    """Draw pairs of the shown deciles, uniformly over the corpus, from the counts alone.

    Returns:
        index of the receipt → (score, decile, place in the draw, rank among the rows of the
        decile in the shard).
    """
    drawn: dict[int, list[tuple[str, int, int, int]]] = defaultdict(list)
    for score in scores:
        for decile in SHOWN_DECILES.values():
            rows = [r.numbers["deciles"][score]["rows"][decile] for r in receipts]
            ends = np.cumsum(rows, dtype=np.int64)
            total = int(ends[-1]) if len(ends) else 0
            random_ranks = random.Random(f"{seed} {score} {decile}").sample(
                range(total), min(DRAWN, total)
            )
            for place, rank in enumerate(random_ranks):
                index = int(np.searchsorted(ends, rank, side="right"))
                start = int(ends[index]) - rows[index]
                drawn[index].append((score, decile, place, rank - start))
    return drawn


def _tables(
    receipts: Sequence[Receipt], deciles: Iterable[str], drawn: dict[int, Any]
) -> Iterator[pa.Table]:
    scores = list(deciles)
    texts = ["id", "source", "reference", "translation", *map(schema.decile, scores)]
    for index, receipt in enumerate(receipts):
        (shard,) = receipt.shards
        yield read_shard(shard, [*scores, *texts] if index in drawn else scores)


def _pair(table: pa.Table, score: str, decile: int, rank: int) -> Pair:
    row = int(np.flatnonzero(table[schema.decile(score)].to_numpy() == decile)[rank])
    names = ("id", "source", "reference", "translation", score)
    return Pair(*(table[name][row].as_py() for name in names))


def _density(deciles: dict[str, dict[str, list]]) -> Density | None:
    """Similarity of meaning against overlap of words, or the nearest that there is."""

    def first(*names: str) -> str | None:
        return next((name for name in names if name in deciles), None)

    x = first("trigram_overlap", "unigram_f1", "edit_distance")
    y = first("paragram_similarity", "translation_score")
    if x is None or y is None:
        if len(deciles) < 2:
            return None
        x, y = list(deciles)[:2]
    return Density(x=x, y=y, x_edges=axis(deciles[x], CELLS), y_edges=axis(deciles[y], CELLS))


def _count(
    table: pa.Table, histograms: dict[str, Histogram], density: Density | None, into: str
) -> None:
    for score, histogram in histograms.items():
        values = table[score].to_numpy()
        counts = getattr(histogram, into)
        counts += np.bincount(_bins(values, histogram.edges), minlength=BINS)
        if into == "pairs":
            low, high = histogram.edges[[0, -1]].astype(np.float32)
            histogram.beyond += int(np.count_nonzero((values < low) | (values > high)))
    if density is not None:
        x = _bins(table[density.x].to_numpy(), density.x_edges)
        y = _bins(table[density.y].to_numpy(), density.y_edges)
        counts = getattr(density, into)
        counts += np.bincount(x * CELLS + y, minlength=CELLS * CELLS).reshape(CELLS, CELLS)


def _bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each value, of equal bins; those beyond the axis go to the outermost."""
    count = len(edges) - 1
    scaled = (values.astype(np.float64) - edges[0]) * (count / (edges[-1] - edges[0]))
    return np.clip(np.floor(scaled), 0, count - 1).astype(np.int64)
