"""What the thresholds of a selection keep and cost, from random pairs of a run and the judged ones.

Pairs are drawn from at most 40 part files: memory and time do not grow with the run. A threshold is
a condition on a score with one bound; a range, of deciles too, has two.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard, read_shard
from paraloom.beam_jobs.select import Criteria, conditions, decide
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.judging.describe import good_of, neighbouring
from paraloom.pipeline.judging.judgments import Judgment
from paraloom.pipeline.judging.sampling import sample_rows
from paraloom.pipeline.records import RunRecord, SelectSection
from paraloom.pipeline.report.report_data import WORDING, Array, axes

_PAIRS, _PART_FILES = 20_000, 40
_JUDGED = 10  # pairs that a precision in a plot needs
_SHOWN_DECILES = {"lowest": 0, "middle": 5, "highest": 9}
_SIDES = ["reference", "translation"]
TEXTS = [*schema.ROW, "source", *_SIDES]
_TOKENS = ["reference_tokens", "translation_tokens"]

Threshold = tuple[Predicate, Criteria]
"""A threshold, and the other criteria of the selection."""


def draw(shards: Sequence[Shard], pairs: int, seed: int, columns: Sequence[str]) -> pa.Table:
    """At most `pairs` random rows, in their order; a table without columns if there is none."""
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


class Kept(NamedTuple):
    """What a selection with one or two other bounds keeps."""

    bounds: tuple[float, ...]
    rows: int  # of the run, estimated from the sample
    share: float  # of the pairs that meet the other criteria
    difference: float | None  # median of 1 − unigram F1; None without pairs
    meaning: float | None  # median of the score of meaning
    good: int
    judged: int

    @property
    def precision(self) -> float | None:
        """The share of good pairs; None if few of those kept are judged."""
        return self.good / self.judged if self.judged >= _JUDGED else None

    @property
    def agreed(self) -> str:
        """The good of the judged pairs, with the 95% interval by Wilson of their share."""
        return good_of(self.good, self.judged)


class Curve(NamedTuple):
    """A threshold that moves, or two together."""

    moved: tuple[Predicate, ...]
    points: list[Kept]
    chosen: Kept  # by the selection of the run


@dataclass(frozen=True, kw_only=True)
class Sample:
    """m random pairs of a run, and those that people judged."""

    pairs: pa.Table
    judged: pa.Table
    good: Array  # bool, of the judged pairs
    difference: Array  # [m]: 1 − unigram F1 of the sides
    scale: float  # rows of the run for each row of the sample

    @classmethod
    def read(
        cls,
        shards: Sequence[Shard],
        record: RunRecord,
        scores: Sequence[str],
        judgments: Sequence[Judgment],
    ) -> Self:
        """Read the part files of `bucket`, which have a row."""
        deciles = map(schema.decile, scores)
        columns = [*TEXTS, *_TOKENS, *scores, *deciles, *record.config.kept]
        pairs = draw(shards, _PAIRS, record.config.seed, columns)
        of: dict[tuple[Any, ...], list[float]] = defaultdict(list)
        for each in judgments:
            of[each.id, each.candidate, each.reference, each.translation].append(each.score)
        ids, names = pa.array({key[0] for key in of}, pa.string()), ("id", "candidate", *_SIDES)
        judged, labels = [pairs.slice(0, 0)], []
        for shard in shards if of else ():
            found = read_shard(shard, columns)
            found = found.filter(pc.is_in(found["id"], value_set=ids))
            keys = [tuple(map(row.get, names)) for row in found.to_pylist()]
            judged.append(found.filter(pa.array([key in of for key in keys], pa.bool_())))
            labels += [fmean(of[key]) for key in keys if key in of]
        sides = (pairs[side].combine_chunks() for side in _SIDES)
        f1 = PairScorer(["unigram_f1"], language=record.language).score(*sides)["unigram_f1"]
        return cls(
            pairs=pairs,
            judged=pa.concat_tables(judged),
            good=np.array(labels) >= record.config.select.good,
            difference=1 - f1.astype(float),
            scale=sum(shard.rows for shard in shards) / len(pairs),
        )

    def meet(self, criteria: Criteria) -> tuple[Array, Array]:
        """Which pairs, and which judged ones, meet the criteria and are no copies: bool."""
        pairs, judged = (decide(of, criteria)[0] == "" for of in (self.pairs, self.judged))
        return pairs, judged

    def keep(self, free: tuple[Array, Array], *moved: Predicate, meaning: str = "") -> Kept:
        """What predicates keep of the pairs, and the judged ones, that `meet` gave."""
        kept, judged = free
        for predicate in moved:
            kept = kept & predicate.holds(_values(self.pairs, predicate))
            judged = judged & predicate.holds(_values(self.judged, predicate))
        means = self.pairs[meaning].to_numpy() if meaning else np.array([])

        def middle(values: Array) -> float | None:
            return float(np.median(values[kept])) if len(values) and kept.any() else None

        return Kept(
            bounds=tuple(predicate.numbers[0] for predicate in moved),
            rows=round(kept.sum() * self.scale),
            share=float(kept.sum() / max(free[0].sum(), 1)),
            difference=middle(self.difference),
            meaning=middle(means),
            good=int(self.good[judged].sum()),
            judged=int(judged.sum()),
        )

    def curve(self, predicate: Predicate, rest: Criteria) -> Curve:
        """Move a threshold over the values of its column, but for the outermost."""
        values = np.quantile(_values(self.pairs, predicate), np.linspace(0.005, 0.995, 40))
        moved = [replace(predicate, value=value) for value in np.unique(values).tolist()]
        free = self.meet(rest)
        points = [self.keep(free, each) for each in moved]
        return Curve((predicate,), points, self.keep(free, predicate))

    def frontier(self, criteria: Criteria, scores: Sequence[str]) -> Curve | None:
        """Move the bound on wording; that on meaning follows, so that as many pairs are kept.

        None without two such scores, or if nothing is selected.
        """
        limits = {each: each.column.removesuffix(schema.decile("")) for each in criteria.where}
        by = [] if criteria.deciles is None else [criteria.by]
        both = axes(scores, [name for name in scores if name in (*by, *limits.values())])
        selected, judged = self.meet(criteria)
        if both is None or both[0] not in WORDING or not selected.any():
            return None
        where = tuple(each for each, score in limits.items() if score not in both)
        deciles = None if criteria.by in both else criteria.deciles
        free = self.meet(replace(criteria, where=where, deciles=deciles))
        sign = ">=" if both[0] == "edit_distance" else "<="
        words, meaning = (self.pairs[name].to_numpy()[free[0]] for name in both)
        ordered = np.sort(words)[:: 1 if sign == "<=" else -1]
        at = np.linspace(selected.sum() - 1, len(ordered) - 1, 12).round().astype(int)
        points = []
        for bound in dict.fromkeys(ordered[at].tolist()):
            first = Predicate(both[0], sign, bound)
            least = float(np.sort(meaning[first.holds(words)])[-selected.sum()])
            moved = first, Predicate(both[1], ">=", least)
            points.append(self.keep(free, *moved, meaning=both[1]))
        return Curve(moved, points, self.keep((selected, judged), meaning=both[1]))

    def examples(self, score: str, seed: int) -> dict[str, list[dict[str, Any]]]:
        """Four random pairs of each shown decile of a score."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.pairs))
        deciles = self.pairs[schema.decile(score)].to_numpy()[order]
        return {
            f"{name} decile ({decile})": self.pairs.take(order[deciles == decile][:4]).to_pylist()
            for name, decile in _SHOWN_DECILES.items()
        }

    def missed(self, criteria: Criteria, most: int, seed: int) -> list[dict[str, Any]]:
        """Pairs that just missed the criteria, as they are judged, with `why`."""
        found = sample_rows([self.pairs], criteria, most, seed)
        rows: list[dict[str, Any]] = found.to_pylist()
        for reason, fails, values, _ in conditions(found, criteria) if rows else ():
            values = values if values.dtype == object else np.round(values, 3)
            for row in np.flatnonzero(fails):
                rows[row]["why"] = f"{reason}: {values[row]}"
        return rows


def criteria_of(select: SelectSection, record: RunRecord) -> Criteria:
    """The criteria that a pair meets or not whatever other pairs there are."""
    chosen = None if select.by in CHOSEN else select.deciles  # before a stage chose them
    deciles = None if chosen is None else tuple(chosen)
    where = tuple(Predicate.parse(text) for text in select.where)
    language = record.language
    limits: Any = {"max_tokens": select.max_tokens, "size": None, "seed": 0}
    return Criteria(by=select.by, deciles=deciles, where=where, language=language, **limits)


def thresholds(criteria: Criteria) -> list[Threshold]:
    """The thresholds of a selection on scores and their deciles."""
    ranges = neighbouring(criteria.deciles or ())
    where = [each for each in criteria.where if each.numbers]
    words = [each for each in criteria.where if not each.numbers]
    if len(ranges) == 1:
        where.append(Predicate(schema.decile(criteria.by), "in", ranges[0]))
        criteria = replace(criteria, deciles=None)
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


def _values(pairs: pa.Table, predicate: Predicate) -> Array:
    return np.asarray(pairs[predicate.column].to_numpy())
