"""What each threshold of a selection keeps, from a sample of the run's pairs.

The sample has at most 20,000 pairs of 40 part files, so that memory and time do not grow with the
run; the pairs that people judged are read besides. A threshold is a condition of `select.where` on
a score, or an end of a range of deciles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Deciles, Shard, read_shard
from paraloom.beam_jobs.select import Criteria, judge
from paraloom.beam_jobs.transforms.predicates import Predicate
from paraloom.models.agreement.precision import wilson
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.judging.describe import interval_in_words, neighbouring
from paraloom.pipeline.judging.judgments import Judgment
from paraloom.pipeline.records import RunRecord, SelectSection
from paraloom.pipeline.report.report_data import Array, axis

_PAIRS, _PART_FILES = 20_000, 40
_POINTS = 40
_JUDGED = 10  # pairs that a precision in a plot needs
_TEXTS = ("source", "reference", "translation")


def draw(
    shards: Sequence[Shard], pairs: int, seed: int, columns: Sequence[str] | None = None
) -> pa.Table | None:
    """At most `pairs` random rows of at most 40 part files, in their order; None if there is none.

    The same shards and seed give the same rows.
    """
    rng = np.random.default_rng(seed)
    some = [shard for shard in shards if shard.rows]
    if len(some) > _PART_FILES:
        some = [some[i] for i in np.sort(rng.choice(len(some), _PART_FILES, replace=False))]
    ends = np.cumsum([shard.rows for shard in some])
    total = int(ends[-1]) if some else 0
    ranks = np.sort(rng.choice(total, min(pairs, total), replace=False))
    tables = []
    for shard, end in zip(some, ends, strict=True):
        rows = ranks[(ranks >= end - shard.rows) & (ranks < end)] - (end - shard.rows)
        if len(rows):
            tables.append(read_shard(shard, columns).take(rows))
    return pa.concat_tables(tables).combine_chunks() if tables else None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Random pairs of a run, and those that people judged."""

    pairs: pa.Table  # m rows
    rows: int  # of the run
    difference: Array  # [m]: 1 − unigram F1 of the sides
    judged: pa.Table
    good: Array  # bool, of the judged pairs

    @classmethod
    def read(
        cls,
        shards: Sequence[Shard],
        record: RunRecord,
        scores: Sequence[str],
        judgments: Sequence[Judgment],
    ) -> Self | None:
        """Read the part files of `bucket`; None if they have no row."""
        tokens = ("reference_tokens", "translation_tokens")
        deciles = map(schema.decile, scores)
        columns = [*schema.ROW, *_TEXTS, *tokens, *scores, *deciles]
        pairs = draw(shards, _PAIRS, record.config.seed, columns)
        if pairs is None:
            return None
        if "unigram_f1" in scores:
            f1 = pairs["unigram_f1"].to_numpy()
        else:
            sides = (pairs[side].combine_chunks() for side in _TEXTS[1:])
            f1 = PairScorer(["unigram_f1"], language=record.language).score(*sides)["unigram_f1"]
        judged, labels = _judged(shards, judgments, columns, pairs.schema)
        return cls(
            pairs=pairs,
            rows=sum(shard.rows for shard in shards),
            difference=1 - f1.astype(float),
            judged=judged,
            good=labels >= record.config.select.good,
        )


def _judged(
    shards: Sequence[Shard], judgments: Sequence[Judgment], columns: list[str], target: pa.Schema
) -> tuple[pa.Table, Array]:
    """The rows with texts that were judged, and their mean labels."""
    labels: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for judgment in judgments:
        key = judgment.id, judgment.candidate, judgment.reference, judgment.translation
        labels[key].append(judgment.score)
    tables, found = [target.empty_table()], []
    ids = pa.array(sorted({judgment.id for judgment in judgments}), pa.string())
    for shard in shards if judgments else ():
        table = read_shard(shard, columns)
        table = table.filter(pc.is_in(table["id"], value_set=ids))
        names = ("id", schema.CANDIDATE.name, *_TEXTS[1:])
        keys = [tuple(row.get(name) for name in names) for row in table.to_pylist()]
        tables.append(table.filter(pa.array([key in labels for key in keys], pa.bool_())))
        found += [fmean(labels[key]) for key in keys if key in labels]
    return pa.concat_tables(tables), np.array(found, float)


class Threshold(NamedTuple):
    """A threshold, and the other criteria of the selection."""

    predicate: Predicate  # with <, <=, > or >=
    rest: Criteria


def criteria_of(select: SelectSection, record: RunRecord) -> Criteria:
    """The criteria that a pair meets or not whatever other pairs there are."""
    return Criteria(
        by=select.by,
        deciles=None if select.deciles is None else tuple(select.deciles),
        max_tokens=select.max_tokens,
        size=None,
        seed=record.config.seed,
        where=tuple(map(Predicate.parse, select.where)),
        language=record.language,
    )


def thresholds(criteria: Criteria, deciles: Mapping[str, Deciles]) -> Iterator[Threshold]:
    """The thresholds of a selection among the scores with `deciles`."""
    where = [end for predicate in criteria.where for end in _ends(predicate)]
    for predicate in where:
        if predicate.column in deciles:
            others = tuple(other for other in where if other is not predicate)
            yield Threshold(predicate, replace(criteria, where=others))
    ranges = neighbouring(criteria.deciles or ())
    if len(ranges) == 1 and criteria.by in deciles:
        first, last = ranges[0]
        summary = deciles[criteria.by]
        low, high = summary.lowest[first], summary.highest[last]
        ends = [Predicate(criteria.by, ">=", low)] if first and low is not None else []
        ends += [Predicate(criteria.by, "<=", high)] if last < 9 and high is not None else []
        for predicate in ends:
            others = (*where, *(end for end in ends if end is not predicate))
            yield Threshold(predicate, replace(criteria, deciles=None, where=others))


def _ends(predicate: Predicate) -> list[Predicate]:
    """A range as two predicates."""
    if isinstance(predicate.value, tuple):
        signs = zip((">=", "<="), predicate.value, strict=True)
        return [Predicate(predicate.column, sign, value) for sign, value in signs]
    return [predicate]


def meets(pairs: pa.Table, criteria: Criteria) -> Array:
    """Which pairs meet the criteria and are no copies: bool [n]."""
    return np.asarray(judge(pairs, criteria)[0] == "")


class Kept(NamedTuple):
    """What a selection keeps if one of its thresholds has another value."""

    value: float
    rows: int  # of the run, estimated from the sample
    share: float  # of the pairs that meet the other criteria
    difference: float | None  # median of 1 − unigram F1; None without pairs
    good: int
    judged: int

    @property
    def precision(self) -> float | None:
        """The share of good pairs; None if few of those kept are judged."""
        return self.good / self.judged if self.judged >= _JUDGED else None

    @property
    def words(self) -> str:
        """In one sentence."""
        shown = f"{self.rows:,} pairs are kept, {self.share:.0%} of those that meet all else"
        if self.difference is not None:
            shown += f"; their median difference is {self.difference:.2f}"
        if self.judged:
            shown += f"; {good_of(self.good, self.judged)} judged pairs are good"
        return f"{shown}."


class Curve(NamedTuple):
    """A threshold that moves."""

    predicate: Predicate
    points: list[Kept]  # values increase
    chosen: Kept

    def line(self, of: str) -> list[tuple[float, float]]:
        """The values of a field of the points, where they have one, for a plot."""
        found = [(point.value, getattr(point, of)) for point in self.points]
        return [(value, y) for value, y in found if y is not None]


def good_of(good: int, judged: int) -> str:
    """A precision with its 95% interval by Wilson.

    >>> good_of(31, 40)
    '31 of 40 (95%: 0.62–0.88)'
    """
    low, high = wilson(np.array([good / judged]), np.array([judged]))
    return f"{good} of {judged} (95%: {interval_in_words((low[0], high[0]))})"


def curve(sample: Sample, threshold: Threshold, summary: Deciles) -> Curve:
    """Move a threshold over the values of its score, whose deciles are `summary`."""
    predicate, rest = threshold
    scale = sample.rows / len(sample.pairs)
    others, judged = meets(sample.pairs, rest), meets(sample.judged, rest)
    values = sample.pairs[predicate.column].to_numpy()[others]
    difference, good = sample.difference[others], sample.good[judged]
    of_judged = sample.judged[predicate.column].to_numpy()[judged]

    def at(value: float) -> Kept:
        moved = replace(predicate, value=value)
        kept, agreed = moved.holds(values), moved.holds(of_judged)
        rows = int(kept.sum())
        return Kept(
            value,
            rows=round(rows * scale),
            share=rows / max(len(values), 1),
            difference=float(np.median(difference[kept])) if rows else None,
            good=int(good[agreed].sum()),
            judged=int(agreed.sum()),
        )

    (value,) = predicate.numbers
    return Curve(predicate, [at(v) for v in axis(summary, _POINTS).tolist()], at(value))


class NearMiss(NamedTuple):
    """A pair that one threshold keeps out of the corpus."""

    source: str
    reference: str
    translation: str
    id: str
    why: str


def near_misses(sample: Sample, found: Sequence[Threshold], most: int) -> list[NearMiss]:
    """The pairs of the sample that fail one threshold and come nearest to it, at most one of each
    reference; distances are in standard deviations of the score."""
    missed: list[tuple[float, int, Predicate]] = []
    for predicate, rest in found:
        values = sample.pairs[predicate.column].to_numpy().astype(float)
        distance = np.abs(values - predicate.numbers[0]) / (values.std() or 1.0)
        fails = ~predicate.holds(sample.pairs[predicate.column].to_numpy())
        rows = np.flatnonzero(fails & meets(sample.pairs, rest))
        nearest = rows[np.argsort(distance[rows], kind="stable")][: 10 * most]
        missed += [(float(distance[row]), int(row), predicate) for row in nearest]
    shown: dict[str, NearMiss] = {}
    for _, row, predicate in sorted(missed, key=lambda item: item[:2]):
        pair = sample.pairs.slice(row, 1).to_pylist()[0]
        why = f"not {predicate}: {pair[predicate.column]:.3f}"
        miss = NearMiss(*(pair[name] for name in (*_TEXTS, "id")), why)
        shown.setdefault(miss.reference, miss)
    return list(shown.values())[:most]
