"""Criteria: which pairs form a corpus, and why the other pairs are rejected."""

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

    by: str  # score of the deciles and of the exported TSV file
    deciles: tuple[int, ...] | None  # deciles to select, 0 the lowest; None: all
    max_tokens: int | None  # Moses tokens on either side; None: unlimited
    size: int | None  # number of pairs to sample among pairs that meet all conditions; None: all
    seed: int
    where: tuple[Predicate, ...] = ()  # further conditions, which must all hold
    per_source: PerSource = "all"  # translations of a source to select if they meet the conditions
    max_overlap: float = 1.0  # largest trigram overlap of two `diverse` translations of a source
    language: str = ENGLISH  # language of the translations, for their overlap
    exclude: Exclusion | None = None  # evaluation sentences that no pair may contain
    generators: bool = False  # whether several generators made the translations
    rank: str | None = None  # score that orders a source's pairs; None: row order
    per_generator: float | None = None  # largest share of one generator in the corpus
    near_duplicates: float | None = None  # Jaccard index from which pairs are near-copies

    @property
    def columns(self) -> list[str]:
        """Columns that `decide` reads."""
        columns = [*schema.ROW, *TEXTS, *(f"{side}_tokens" for side in TEXTS)]
        if self.deciles is not None:
            columns.append(schema.decile(self.by))
        columns += [schema.GENERATOR.name] if self.generators else []
        columns += [self.rank] if self.rank else []
        return list(dict.fromkeys([*columns, *(p.column for p in self.where)]))

    @property
    def draws(self) -> bool:
        """Whether only a sample of the matching pairs is selected."""
        return self.size is not None or self.per_generator is not None

    def ranks(self, rows: dict[str, int]) -> dict[str, list[int]]:
        """Return, for each generator, the rank of the first row that is not selected."""
        taken = quotas(rows, self.per_generator, self.size)
        return {name: [quota] for name, quota in taken.items()}

    def not_drawn(self, kind: str) -> str:
        """Return the reason for rejecting a pair of a kind (`kinds_of`) that is not drawn."""
        return "not drawn" if self.size is not None else f"over the limit for generator {kind}"


def conditions(table: pa.Table, criteria: Criteria) -> Iterator[tuple[Any, ...]]:
    """Yield the conditions on rows, in order: reason, failing rows (bool [n]), values, bounds."""
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
    """Return the only condition that each row fails, and the distance to its nearest bound.

    The condition is its number in `conditions`, int [n], and −1 if the row fails no condition or
    several conditions. The distance is float64 [n].
    """
    failed, which, distance = np.zeros((3, table.num_rows))
    for number, (_, fails, values, bounds) in enumerate(conditions(table, criteria)):
        which[fails] = number
        if bounds:  # words have no bounds
            away = values[fails].astype(np.float64)[:, None] - np.array(bounds)
            distance[fails] = np.abs(away).min(axis=1)
        failed += fails
    return np.where(failed == 1, which, -1).astype(np.int64), distance


def decide(table: pa.Table, criteria: Criteria) -> tuple[np.ndarray, np.ndarray]:
    """Apply the conditions that do not depend on rows with other sources.

    Returns the reasons for rejection, object [n] ("" if accepted), and 128-bit hashes of the m
    accepted rows' normalised texts, uint64 [m, 2].
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
    """Choose translations of each source, bool [n]; return why other translations are rejected."""
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
    """Mark the first row of each source, bool [n]. The best candidate of a source comes first."""
    return np.asarray(np.diff(_sources(table), prepend=-1) != 0)


def best_first(table: pa.Table, score: str) -> np.ndarray:
    """Return the order of rows, int64 [n], that sorts candidates of a source by falling score."""
    return np.lexsort((-table[score].to_numpy(), _sources(table)))


def diverse_candidates(table: pa.Table, max_overlap: float, language: str = ENGLISH) -> np.ndarray:
    """Mark translations of each source that differ from each other, bool [n].

    The best translation is selected first. Then the candidate is added whose largest overlap with
    the selected candidates is smallest, as long as this overlap is at most `max_overlap`. The
    earlier of two equal candidates is added. The overlap is `trigram_overlap`
    (`paraloom.models.scorers.tokens`), or the F1 of tokens if a text has no trigram.
    """
    sources = _sources(table)
    place = np.arange(len(sources)) - np.flatnonzero(best_candidates(table))[sources]
    width = int(place.max(initial=0)) + 1
    # Largest overlap with selected candidates.
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
    """Number of each row's source, int64 [n], from 0. The rows of a source are neighbours."""
    ids = table["id"].combine_chunks().dictionary_encode().indices.to_numpy()
    return np.cumsum(np.diff(ids, prepend=ids[:1]) != 0)


def _overlaps(
    table: pa.Table, sources: np.ndarray, place: np.ndarray, width: int, language: str
) -> np.ndarray:
    """Return the overlaps of all candidates of a source: float64 [sources, width, width]."""
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
    """What a selection with some criteria would contain."""

    counts: dict[str, int]  # rows by reason, most frequent first, and then `selected`
    units: np.ndarray  # part file of each of the n pairs that meet the conditions, int64 [n]
    rows: np.ndarray  # row of the pair in the part file, int64 [n]


def preview(shards: Sequence[Shard], criteria: Criteria) -> Preview:
    """Apply the criteria without a job and without output. `size` affects the counts only."""
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
    """Return the kind of each row, [n]; rows are drawn separately from each kind (generator)."""
    if criteria.per_generator is None:
        return np.full(len(table), "sample", object)
    return np.asarray(table[schema.GENERATOR.name].to_pylist(), object)
