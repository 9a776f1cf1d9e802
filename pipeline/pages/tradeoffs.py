"""Estimates of the number and the quality of pairs that other thresholds would select.

A threshold is a condition with one bound. A range of scores or deciles is two thresholds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from statistics import fmean
from typing import Any, Self

import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.criteria import Criteria, conditions, decide
from paraloom.beam_jobs.transforms.shares import Deciles
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.judging.agreement import by_pair, judged_rows
from paraloom.pipeline.judging.cuts import ENOUGH, Interval
from paraloom.pipeline.judging.describe import neighbouring
from paraloom.pipeline.judging.judgments import Judgment
from paraloom.pipeline.judging.sampling import sample_rows
from paraloom.pipeline.pages.plots import WORDING, Array, axes
from paraloom.pipeline.run.records import RunRecord

PAIRS, _PART_FILES = 20_000, 40  # largest numbers of pairs and of shards in the sample
_SIDES = ["reference", "translation"]
TEXTS = [*schema.ROW, schema.GENERATOR.name, "source", *_SIDES]
_TOKENS = ["reference_tokens", "translation_tokens"]


def draw(shards: Sequence[Shard], pairs: int, seed: int, columns: Sequence[str]) -> pa.Table:
    """Draw at most `pairs` random rows, in order. If no shard has rows, return an empty table."""
    rng = np.random.default_rng(seed)
    some = [shard for shard in shards if shard.rows]
    some = [some[i] for i in np.sort(rng.permutation(len(some))[:_PART_FILES])]
    ends = np.cumsum([0, *(shard.rows for shard in some)])
    ranks = np.sort(rng.choice(ends[-1], min(pairs, ends[-1]), replace=False))
    tables = []
    for shard, start in zip(some, ends[:-1], strict=True):
        rows = ranks[(ranks >= start) & (ranks < start + shard.rows)] - start
        tables += [read_shard(shard, columns).take(rows)] if len(rows) else []
    return pa.concat_tables(tables).combine_chunks() if tables else pa.table({})


def some(pairs: pa.Table, most: int, seed: int) -> list[dict[str, Any]]:
    """Draw at most `most` random rows, in random order."""
    rows = np.random.default_rng(seed).permutation(len(pairs))[:most]
    return list(pairs.take(pa.array(rows)).to_pylist())


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """The pairs selected with certain bounds. A median of fewer than ENOUGH pairs is None."""

    bounds: tuple[float, ...]
    rows: int  # estimated number of these pairs in the whole run
    share: float  # rows / number of pairs that meet all criteria except the bounds
    difference: float | None  # median of 1 − unigram F1
    meaning: float | None  # median of the score that measures meaning
    good: int  # number of judged pairs that are good
    judged: int

    @property
    def precision(self) -> float | None:
        """The share of good pairs, or None if fewer than ENOUGH pairs are judged."""
        return self.good / self.judged if self.judged >= ENOUGH else None


@dataclass(frozen=True, slots=True)
class Curve:
    """The pairs selected at several bounds. `paraloom frontier --json` writes these fields."""

    moved: tuple[Predicate, ...]  # one or two thresholds, whose bounds vary
    points: list[Kept]
    chosen: Kept  # the pairs of the run's own selection

    def shown_bounds(self, of: Kept) -> list[str]:
        """Format the bounds of a point with four digits. Rounding never makes a bound stricter."""
        shown = []
        # In a frontier, `chosen` has no bounds, so the list is empty.
        for predicate, bound in zip(self.moved, of.bounds, strict=False):
            rounding = ROUND_CEILING if predicate.operator in ("<", "<=") else ROUND_FLOOR
            shortest = Decimal(str(np.float32(bound)))
            shown.append(f"{Context(4, rounding).plus(shortest).normalize():f}")
        return shown


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A table of n rows: m random pairs of a run, followed by the judged pairs."""

    rows: pa.Table
    pairs: pa.Table  # the first m rows
    good: Array  # bool [n - m], for each judged pair
    difference: Array  # [m]: 1 − unigram F1 between the sides
    scale: float  # number of rows in the run, divided by m

    @classmethod
    def read(
        cls,
        shards: Sequence[Shard],
        record: RunRecord,
        scores: Sequence[str],
        judgments: Sequence[Judgment],
    ) -> Self:
        """Read a sample of the shards of `bucket`, which must contain at least one row."""
        deciles = map(schema.decile, scores)
        columns = [*TEXTS, *_TOKENS, *scores, *deciles, *record.config.kept]
        pairs = draw(shards, PAIRS, record.config.seed, columns)
        labels = by_pair(judgments)
        judged = judged_rows(labels, shards if labels else (), more=columns)[0]
        sides, scorer = (pairs[side].combine_chunks() for side in _SIDES), ["unigram_f1"]
        f1 = PairScorer(scorer, language=record.config.language).score(*sides)["unigram_f1"]
        return cls(
            rows=pa.concat_tables([pairs, pa.Table.from_pylist([*judged.values()], pairs.schema)]),
            pairs=pairs,
            good=np.array([fmean(labels[of]) for of in judged]) >= record.config.select.good,
            difference=1 - f1.astype(float),
            scale=sum(shard.rows for shard in shards) / len(pairs),
        )

    def meet(self, criteria: Criteria) -> Array:
        """Return a mask of the rows that meet the criteria and have different sides: bool [n]."""
        return np.asarray(decide(self.rows, criteria)[0] == "")

    def keep(self, free: Array, *moved: Predicate, meaning: str = "") -> Kept:
        """Describe the rows of the mask `free` (bool [n]) that meet all conditions in `moved`.

        `meaning` is the name of the score that measures meaning.
        """
        kept = free.copy()
        for predicate in moved:
            kept &= predicate.holds(self.rows[predicate.column].to_numpy())
        pairs, judged = np.split(kept, [len(self.pairs)])
        means = self.pairs[meaning].to_numpy() if meaning else np.array([])

        def middle(values: Array) -> float | None:
            enough = len(values) and pairs.sum() >= ENOUGH
            return float(np.median(values[pairs])) if enough else None

        return Kept(
            bounds=tuple(predicate.numbers[0] for predicate in moved),
            rows=round(pairs.sum() * self.scale),
            share=float(pairs.sum() / max(free[: len(pairs)].sum(), 1)),
            difference=middle(self.difference),
            meaning=middle(means),
            good=int(self.good[judged].sum()),
            judged=int(judged.sum()),
        )

    def curve(self, predicate: Predicate, rest: Criteria) -> Curve:
        """Return the curve of a threshold at up to 40 bounds, over the pairs that meet `rest`."""
        column = self.pairs[predicate.column].to_numpy()
        values = np.unique(np.quantile(column, np.linspace(0.005, 0.995, 40))).tolist()
        free = self.meet(rest)
        points = [self.keep(free, replace(predicate, value=value)) for value in values]
        return Curve((predicate,), points, self.keep(free, predicate))

    def frontier(self, criteria: Criteria, scores: Sequence[str]) -> Curve | None:
        """Return selections of equal size, each with different bounds on wording and meaning.

        The result is None if there are fewer than two scores, if none of them measures wording, or
        if fewer than ENOUGH pairs of the sample are selected.
        """
        limits = {each: each.column.removesuffix(schema.decile("")) for each in criteria.where}
        by = [] if criteria.deciles is None else [criteria.by]
        both = axes(scores, [name for name in scores if name in (*by, *limits.values())])
        selected = self.meet(criteria)
        pairs = int(selected[: len(self.pairs)].sum())
        if both is None or both[0] not in WORDING or pairs < ENOUGH:
            return None
        where = tuple(each for each, score in limits.items() if score not in both)
        deciles = None if criteria.by in both else criteria.deciles
        free = self.meet(replace(criteria, where=where, deciles=deciles))
        sign = ">=" if both[0] == "edit_distance" else "<="
        kept = free[: len(self.pairs)]
        words, meaning = (self.pairs[name].to_numpy()[kept] for name in both)
        ordered = np.sort(words)[:: 1 if sign == "<=" else -1]
        at = np.linspace(pairs - 1, len(ordered) - 1, 12).round().astype(int)
        points = []
        for bound in dict.fromkeys(ordered[at].tolist()):
            first = Predicate(both[0], sign, bound)
            least = float(np.sort(meaning[first.holds(words)])[-pairs])
            moved = first, Predicate(both[1], ">=", least)
            points.append(self.keep(free, *moved, meaning=both[1]))
        return Curve(moved, points, self.keep(selected, meaning=both[1]))

    def missed(self, criteria: Criteria, most: int, seed: int) -> list[dict[str, Any]]:
        """Find pairs that narrowly fail exactly one condition. Their value `why` is the reason."""
        found = sample_rows([self.pairs], criteria, most, seed)
        rows: list[dict[str, Any]] = found.to_pylist()
        for reason, fails, values, _ in conditions(found, criteria) if rows else ():
            for row in np.flatnonzero(fails):
                rows[row]["why"] = f"{reason}: {values[row]!s}"  # `format` would write 16 digits
        return rows


def limits_of(criteria: Criteria) -> list[Predicate]:
    """Return the conditions with numeric bounds. The deciles become one condition on a range."""
    found = [each for each in criteria.where if each.numbers]
    if criteria.deciles:
        ends = min(criteria.deciles), max(criteria.deciles)
        found.append(Predicate(schema.decile(criteria.by), "in", ends))
    return found


def thresholds(criteria: Criteria) -> list[tuple[Predicate, Criteria]]:
    """Return the thresholds of a selection, each with the remaining criteria."""
    words = [each for each in criteria.where if not each.numbers]
    if len(neighbouring(criteria.deciles or ())) > 1:
        where = [each for each in criteria.where if each.numbers]
    else:
        where, criteria = limits_of(criteria), replace(criteria, deciles=None)
    where = [
        Predicate(each.column, sign, number)
        for each in where
        for sign, number in zip(
            (">=", "<=") if each.operator == "in" else (each.operator,), each.numbers, strict=True
        )
    ]
    return [
        (each, replace(criteria, where=(*words, *(other for other in where if other is not each))))
        for each in where
        if each.column not in _TOKENS
    ]


def regions(criteria: Criteria, deciles: Mapping[str, Deciles]) -> dict[str, Interval]:
    """For each score that the criteria restrict, return the interval of allowed values."""
    found: dict[str, Interval] = {}
    for each in limits_of(criteria):
        score = each.column.removesuffix(schema.decile(""))
        if score not in deciles:
            continue
        of, low, high = deciles[score], -np.inf, np.inf
        if score == each.column:
            low = each.numbers[0] if each.operator[0] != "<" else low
            high = each.numbers[-1] if each.operator[0] != ">" else high
        else:
            chosen = np.flatnonzero(each.holds(np.arange(10)))
            low = min((v for k in chosen if (v := of.lowest[k]) is not None), default=low)
            high = max((v for k in chosen if (v := of.highest[k]) is not None), default=high)
        before = found.get(score, (-np.inf, np.inf))
        found[score] = max(before[0], low), min(before[1], high)
    return found
