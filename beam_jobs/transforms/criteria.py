"""Select the pairs of a corpus, and give a reason for each rejected pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import REPEATS_NEARLY, Shard, as_counted, read_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.equal_texts import normalised, repeated, row_hash
from paraloom.beam_jobs.transforms.exclusion import Exclusion
from paraloom.beam_jobs.transforms.shares import quotas
from paraloom.models.languages import ENGLISH
from paraloom.models.scorers import SCORERS, PairScorer

PerSource = Literal["best", "diverse", "all"]
TEXTS = ("reference", "translation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Conditions that a pair must meet."""

    by: str  # name of the score for the deciles and the TSV file
    deciles: tuple[int, ...] | None  # deciles to select, from 0 (lowest) to 9; None: all
    max_tokens: int | None  # maximum number of Moses tokens of each text; None: unlimited
    size: int | None  # number of pairs to draw from the accepted pairs; None: all
    seed: int
    where: tuple[Predicate, ...] = ()  # further conditions, which a pair must all meet
    per_source: PerSource = "all"  # which of the accepted translations of a source to select
    max_overlap: float = 1.0  # maximum trigram overlap between `diverse` translations of a source
    language: str = ENGLISH  # language of the translations
    exclude: Exclusion | None = None  # evaluation sentences that no pair may contain
    generators: bool = False  # whether there is a column with the generator of each translation
    rank: str | None = None  # score that orders the translations of a source; None: row order
    per_generator: float | None = None  # maximum share of each generator in the corpus
    near_duplicates: float | None = None  # minimum Jaccard index of near-copies

    @property
    def columns(self) -> list[str]:
        """Columns that `decide` and `kinds_of` read."""
        columns = [*schema.ROW, *TEXTS, *(f"{side}_tokens" for side in TEXTS)]
        if self.deciles is not None:
            columns.append(schema.decile(self.by))
        columns += [schema.GENERATOR.name] if self.generators else []
        columns += [self.rank] if self.rank else []
        return list(dict.fromkeys([*columns, *(p.column for p in self.where)]))

    @property
    def draws(self) -> bool:
        """Whether a limit may leave accepted pairs out of the corpus."""
        return self.size is not None or self.per_generator is not None

    def ranks(self, rows: dict[str, int]) -> dict[str, list[int]]:
        """Return the rank of the first row that is not drawn, by kind (see `kinds_of`)."""
        taken = quotas(rows, self.per_generator, self.size)
        return {name: [quota] for name, quota in taken.items()}

    def not_drawn(self, kind: str) -> str:
        """Return the reason for rejecting pairs that meet the conditions, but are not drawn."""
        return "not drawn" if self.size is not None else f"over the limit for generator {kind}"


def conditions(table: pa.Table, criteria: Criteria) -> Iterator[tuple[Any, ...]]:
    """Yield (reason, rejected rows as bool [n], compared values [n], bounds) for each condition."""
    if (chosen := criteria.deciles) is not None:
        decile = table[schema.decile(criteria.by)].to_numpy()
        reason = f"outside the selected deciles of {criteria.by}"
        yield reason, ~np.isin(decile, chosen), decile, chosen
    if (most := criteria.max_tokens) is not None:
        tokens = np.maximum(*(table[f"{side}_tokens"].to_numpy() for side in TEXTS))
        yield "more tokens than max_tokens", tokens > most, tokens, (most,)
    for predicate in criteria.where:
        column = table[predicate.column]
        yield _why(predicate), ~predicate.holds_in(column), column.to_numpy(), predicate.numbers


def near_misses(table: pa.Table, criteria: Criteria) -> tuple[np.ndarray, np.ndarray]:
    """Find the rows that exactly one condition rejects, except rows with equal normalised sides.

    Returns two arrays. The first array has the index of this condition, or −1 for all other rows,
    int64 [n]. The second array has the distance between the value of the row and the nearest bound
    of the condition, float64 [n].
    """
    failed, which, distance = np.zeros((3, table.num_rows))
    for number, (_, fails, values, bounds) in enumerate(conditions(table, criteria)):
        which[fails] = number
        if bounds:  # a condition that compares words has none
            away = values[fails].astype(np.float64)[:, None] - np.array(bounds)
            distance[fails] = np.abs(away).min(axis=1)
        failed += fails
    sides = [normalised(table[side].combine_chunks()) for side in TEXTS]
    same = pc.equal(*sides).to_numpy(zero_copy_only=False)  # `decide` rejects such rows
    return np.where((failed == 1) & ~same, which, -1).astype(np.int64), distance


def decide(table: pa.Table, criteria: Criteria) -> tuple[np.ndarray, np.ndarray]:
    """Apply the conditions that depend only on the rows of one source.

    Returns two arrays. The first array has the reason for rejecting each row, or "" for the m
    accepted rows, object [n]. The second array has the hashes of the normalised texts of the
    accepted rows, uint64 [m, 2].
    """
    reasons = np.full(table.num_rows, "", object)
    for reason, fails, _, _ in conditions(table, criteria):
        reasons[fails & (reasons == "")] = reason
    accepted = np.flatnonzero(reasons == "")
    texts = table.take(pa.array(accepted))
    sides = [texts[side].combine_chunks() for side in TEXTS]
    normal = [normalised(side) for side in sides]
    same = pc.equal(*normal).to_numpy(zero_copy_only=False)
    if criteria.exclude:
        reasons[accepted] = criteria.exclude.reasons(sides, normal)
    reasons[accepted[same]] = "both sides are the same"
    kept = reasons[accepted] == ""
    hashes = row_hash(*normal)[kept]
    if criteria.per_source == "all" or not schema.has_candidates(table):
        return reasons, hashes
    chosen, reason = _choose(texts.filter(pa.array(kept)), criteria)
    reasons[accepted[kept][~chosen]] = reason
    return reasons, hashes[chosen]


def _why(predicate: Predicate) -> str:
    scorer = SCORERS.get(predicate.column)
    found = scorer.failure if scorer and not predicate.holds(np.zeros(1)) else ""
    return found or f"not {predicate}"


def _choose(table: pa.Table, criteria: Criteria) -> tuple[np.ndarray, str]:
    order = np.arange(len(table))
    if criteria.rank:
        order = best_first(table, criteria.rank)
        table = table.take(pa.array(order))
    if criteria.per_source == "best":
        found, reason = best_candidates(table), "not the best translation of its source"
    else:
        found = diverse_candidates(table, criteria.max_overlap, criteria.language)
        reason = "too similar to another translation of its source"
    chosen = np.empty(len(table), bool)
    chosen[order] = found
    return chosen, reason


def best_candidates(table: pa.Table) -> np.ndarray:
    """Return whether each row is the first row of its source, bool [n]."""
    return np.asarray(np.diff(_sources(table), prepend=-1) != 0)


def best_first(table: pa.Table, score: str) -> np.ndarray:
    """Return row indices, int64 [n], that sort the rows of each source by decreasing score."""
    return np.lexsort((-table[score].to_numpy(), _sources(table)))


def diverse_candidates(table: pa.Table, max_overlap: float, language: str = ENGLISH) -> np.ndarray:
    """Select translations of each source that differ from each other, bool [n].

    The first translation is always selected. Each step compares every other translation with the
    selected translations. It adds the translation whose largest overlap is smallest, unless this
    overlap exceeds `max_overlap`. The overlap is `trigram_overlap`, or `unigram_f1` if a text has
    fewer than 3 tokens.
    """
    sources = _sources(table)
    place = np.arange(len(sources)) - np.flatnonzero(best_candidates(table))[sources]
    width = int(place.max(initial=0)) + 1
    # Largest overlap with selected candidates. −1: select first. inf: do not select.
    nearest = np.full((int(sources.max(initial=-1)) + 1, width), np.inf)
    nearest[sources, place] = -1.0
    overlap = _overlaps(table, sources, place, width, language)
    kept = np.zeros(nearest.shape, bool)
    every = np.arange(len(nearest))
    for _ in range(width):
        least = nearest.argmin(axis=1)
        takes = nearest[every, least] <= max_overlap
        kept[every[takes], least[takes]] = True
        np.maximum(nearest, overlap[every, least], out=nearest)
        nearest[every, least] = np.inf
    return np.asarray(kept[sources, place])


def _sources(table: pa.Table) -> np.ndarray:
    """Number the sources from 0: int64 [n]. The rows of a source must be adjacent."""
    ids = table["id"].combine_chunks().dictionary_encode().indices.to_numpy()
    return np.cumsum(np.diff(ids, prepend=ids[:1]) != 0)


def _overlaps(
    table: pa.Table, sources: np.ndarray, place: np.ndarray, width: int, language: str
) -> np.ndarray:
    """Return the overlaps between each source's candidates: float64 [sources, width, width]."""
    found = np.zeros((int(sources.max(initial=-1)) + 1, width, width))
    texts = table["translation"].combine_chunks()
    scorer = PairScorer(["trigram_overlap", "unigram_f1"], language=language)
    for distance in range(1, width):
        first = np.flatnonzero(sources[distance:] == sources[:-distance])
        second = first + distance
        scores = scorer.score(texts.take(pa.array(first)), texts.take(pa.array(second)))
        short = np.minimum(scores["reference_tokens"], scores["translation_tokens"]) < 3
        values = np.where(short, scores["unigram_f1"], scores["trigram_overlap"])
        found[sources[first], place[first], place[second]] = values
        found[sources[first], place[second], place[first]] = values
    return found


REPEATS = "repeats an earlier pair"


class Preview(NamedTuple):
    """The result of a selection that is not written."""

    counts: dict[str, int]  # number of rows by reason, in decreasing order; then `selected`
    units: np.ndarray  # shard index of each of the n accepted pairs, int64 [n]
    rows: np.ndarray  # row of each accepted pair in its shard, int64 [n]


def preview(shards: Sequence[Shard], criteria: Criteria) -> Preview:
    """Count the pairs that a selection would contain, without running a job."""
    counts: Counter[str] = Counter()
    hashes, units, rows, kinds, texts = [np.empty((0, 2), np.uint64)], [], [], [], []
    for unit, shard in enumerate(shards):
        table = read_shard(shard, criteria.columns)
        reasons, hashed = decide(table, criteria)
        kinds.append(kinds_of(table, criteria)[reasons == ""])
        counts.update(as_counted(pa.array(reasons[reasons != ""], pa.string())).to_pylist())
        hashes.append(hashed)
        rows.append(np.flatnonzero(reasons == ""))
        units.append(np.full(len(rows[-1]), unit))
        if criteria.near_duplicates is not None:
            accepted = table.select(TEXTS).take(pa.array(rows[-1])).combine_chunks()
            texts.append([normalised(side.combine_chunks()) for side in accepted.columns])
    unit_of, row_of = (np.concatenate([[], *of]).astype(np.int64) for of in (units, rows))
    first = ~repeated(np.concatenate(hashes), unit_of, row_of)
    counts[REPEATS] = len(first) - int(np.count_nonzero(first))
    if criteria.near_duplicates is not None and texts:
        from paraloom.beam_jobs.near_duplicates import near_copies  # imports Beam

        one, other = (
            pa.concat_arrays(of).filter(pa.array(first)) for of in zip(*texts, strict=True)
        )
        near = near_copies(one, other, criteria.near_duplicates)
        counts[REPEATS_NEARLY] = int(np.count_nonzero(near))
        first[np.flatnonzero(first)[near]] = False
    of_kind = Counter(np.concatenate([[], *kinds])[first].tolist())
    taken = quotas(of_kind, criteria.per_generator, criteria.size)
    for kind, pairs in of_kind.items():
        counts[criteria.not_drawn(kind)] += pairs - taken[kind]
    found = {reason: count for reason, count in counts.most_common() if count}
    return Preview({**found, "selected": sum(taken.values())}, unit_of[first], row_of[first])


def kinds_of(table: pa.Table, criteria: Criteria) -> np.ndarray:
    """Return each row's kind, [n]: its generator, or `sample` if no generator has a limit."""
    if criteria.per_generator is None:
        return np.full(len(table), "sample", object)
    return np.asarray(table[schema.GENERATOR.name].to_pylist(), object)
