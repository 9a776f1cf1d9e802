"""Selection: which pairs form the corpus, and why others are rejected."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Literal, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result, UnitJob, launch, local_workers
from paraloom.beam_jobs.engine.shards import HASHES, Receipt, Shard, Unit, as_counted, read_shard
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.transforms.candidates import best_candidates, best_first, diverse_candidates
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.duplicates import (
    Hashes,
    WithDuplicates,
    normalised,
    repeated,
    row_hash,
)
from paraloom.beam_jobs.transforms.exclusion import Exclusion
from paraloom.beam_jobs.transforms.order_statistics import (
    Column,
    Columns,
    OrderStatistics,
    Targets,
    position,
)
from paraloom.beam_jobs.transforms.shares import quotas
from paraloom.models.languages import ENGLISH
from paraloom.models.scorers import SCORERS

VERSION = 1  # bump when the job's rows change for the same input

PerSource = Literal["best", "diverse", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Conditions that a pair must meet."""

    by: str  # score of `deciles` and of the exported TSV
    deciles: tuple[int, ...] | None  # to select, 0 the lowest; None: all
    max_tokens: int | None  # Moses tokens on either side; None: unlimited
    size: int | None
    """Number of pairs to sample from those that meet the other conditions; None: all."""
    seed: int
    where: tuple[Predicate, ...] = ()  # further conditions, which must all hold
    per_source: PerSource = "all"
    """Which translations of a source to take, among those that meet the other conditions: the best
    one, those that differ from each other, or all."""
    max_overlap: float = 1.0  # trigram overlap of two `diverse` translations of a source, at most
    language: str = ENGLISH  # of the translations, for their overlap
    exclude: Exclusion | None = None  # evaluation sentences that no pair may contain
    generators: bool = False  # whether several generators made the translations
    rank: str | None = None  # score that orders a source's pairs; None: row order
    per_generator: float | None = None  # maximum share of one generator in the corpus

    @property
    def columns(self) -> list[str]:
        """Columns that `decide` reads."""
        texts = ("reference", "translation")
        columns = [*schema.ROW, *texts, *(f"{side}_tokens" for side in texts)]
        if self.deciles is not None:
            columns.append(schema.decile(self.by))
        columns += [schema.GENERATOR.name] if self.generators else []
        columns += [self.rank] if self.rank else []
        return list(dict.fromkeys([*columns, *(p.column for p in self.where)]))

    @property
    def draws(self) -> bool:
        """Whether only a sample of the matching pairs is taken."""
        return self.size is not None or self.per_generator is not None

    def quotas(self, rows: dict[str, int]) -> dict[str, int]:
        """Number of pairs to take per generator, or in all."""
        return quotas(rows, self.per_generator, self.size)

    def ranks(self, rows: dict[str, int]) -> dict[str, list[int]]:
        """Rank of each generator's first row that is not taken."""
        return {name: [quota] for name, quota in self.quotas(rows).items()}


def conditions(table: pa.Table, criteria: Criteria) -> Iterator[tuple[Any, ...]]:
    """Yield the conditions on single rows, in the order in which they reject: reason, rows that
    fail (bool [n]), compared values [n], bounds."""
    if (chosen := criteria.deciles) is not None:
        decile = table[schema.decile(criteria.by)].to_numpy()
        reason = f"outside the selected deciles of {criteria.by}"
        yield reason, ~np.isin(decile, chosen), decile, chosen
    if (most := criteria.max_tokens) is not None:
        sides = (table[f"{side}_tokens"].to_numpy() for side in ("reference", "translation"))
        tokens = np.maximum(*sides)
        yield "more tokens than max_tokens", tokens > most, tokens, (most,)
    for predicate in criteria.where:
        column = table[predicate.column]
        yield _why(predicate), ~predicate.holds_in(column), column.to_numpy(), predicate.numbers


def near_misses(table: pa.Table, criteria: Criteria) -> tuple[np.ndarray, np.ndarray]:
    """For rows that fail exactly one of `conditions`: its number, int [n] (−1 for other rows), and
    the distance from the nearest bound, float64 [n]."""
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

    Returns reasons for rejection, object [n] ("" if accepted), and 128-bit hashes of the m accepted
    rows' normalised texts, uint64 [m, 2].
    """
    reasons = np.full(table.num_rows, "", object)
    for reason, fails, _, _ in conditions(table, criteria):
        reasons[fails & (reasons == "")] = reason
    accepted = np.flatnonzero(reasons == "")
    texts = table.take(pa.array(accepted))
    reference = normalised(texts["reference"].combine_chunks())
    translation = normalised(texts["translation"].combine_chunks())
    same = pc.equal(reference, translation).to_numpy(zero_copy_only=False)
    if criteria.exclude:
        sides = [texts[side].combine_chunks() for side in ("reference", "translation")]
        reasons[accepted] = criteria.exclude.reasons(sides, (reference, translation))
    reasons[accepted[same]] = "both sides are the same"
    kept = reasons[accepted] == ""
    hashes = row_hash(reference, translation)[kept]
    if criteria.per_source == "all" or not schema.has_candidates(table):
        return reasons, hashes
    chosen, reason = _choose(texts.filter(pa.array(kept)), criteria)
    reasons[accepted[kept][~chosen]] = reason
    return reasons, hashes[chosen]


def _why(predicate: Predicate) -> str:
    """Give the reason why a pair fails; for a check, its finding."""
    scorer = SCORERS.get(predicate.column)
    found = scorer.failure if scorer and not predicate.holds(np.zeros(1)) else ""
    return found or f"not {predicate}"


def _choose(table: pa.Table, criteria: Criteria) -> tuple[np.ndarray, str]:
    """Choose translations of each source, bool [n]; the reason for rejecting the others."""
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


_REPEATS = "repeats an earlier pair"
_NOT_DRAWN = "not drawn"


class Select(beam.PTransform):
    """Selects pairs: units in, receipts out. `rows` is an estimate."""

    def __init__(self, output: str, criteria: Criteria, rows: int):
        super().__init__()
        self.output, self.criteria, self.rows = output, criteria, rows

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Scan once for duplicates, twice for sampling (if `size` is set), and once to write."""
        criteria = self.criteria

        def hashes(unit: Unit) -> Iterator[Hashes]:
            reasons, hashed = decide(read_shard(unit.shard, criteria.columns), criteria)
            yield hashed, np.flatnonzero(reasons == "")

        def accepted(element: tuple[Unit, np.ndarray]) -> Columns:
            unit, duplicates = element
            table = read_shard(unit.shard, criteria.columns)
            reasons, _ = decide(table, criteria)
            reasons[duplicates] = _REPEATS
            return {name: _column(table, of) for name, of in _drawn_from(table, reasons, criteria)}

        joined = units | "Duplicate pairs" >> WithDuplicates(hashes, self.rows, self.output)
        write = _WriteCorpus(self.output, criteria)
        if not criteria.draws:
            return joined | "Write" >> beam.ParDo(write)
        bound = joined | "Sample" >> OrderStatistics(accepted, criteria.ranks, seed=criteria.seed)
        return joined | "Write" >> beam.ParDo(write, beam.pvalue.AsSingleton(bound))


class Preview(NamedTuple):
    """Result of `preview`."""

    counts: dict[str, int]  # rows by reason, falling; then those `selected`
    units: np.ndarray  # int64 [n]: part file of each pair that meets the conditions
    rows: np.ndarray  # int64 [n]: row in that file


def preview(shards: Sequence[Shard], criteria: Criteria) -> Preview:
    """Apply the criteria without a job or output; `size` is counted, but not drawn."""
    counts: Counter[str] = Counter()
    hashes, units, rows, kinds = [np.empty((0, 2), np.uint64)], [], [], []
    for unit, shard in enumerate(shards):
        table = read_shard(shard, criteria.columns)
        reasons, hashed = decide(table, criteria)
        kinds.append(_kinds(table, criteria)[reasons == ""])
        counts.update(as_counted(pa.array(reasons[reasons != ""], pa.string())).to_pylist())
        hashes.append(hashed)
        rows.append(np.flatnonzero(reasons == ""))
        units.append(np.full(len(rows[-1]), unit))
    unit_of, row_of = (np.concatenate([[], *of]).astype(np.int64) for of in (units, rows))
    first = ~repeated(np.concatenate(hashes), unit_of, row_of)
    selected = int(np.count_nonzero(first))
    of_kind = Counter(np.concatenate([[], *kinds])[first].tolist())
    drawn = sum(criteria.quotas(of_kind).values()) if criteria.draws else selected
    counts.update({_REPEATS: len(first) - selected, _NOT_DRAWN: selected - drawn})
    found = {reason: count for reason, count in counts.most_common() if count}
    return Preview({**found, "selected": drawn}, unit_of[first], row_of[first])


def run(units: Sequence[Unit], output: str, criteria: Criteria, arguments: Sequence[str]) -> Result:
    """Select from `units` into `output`, and export the TSV."""
    storage.remove(tsv_path(output))
    rows = sum(unit.rows for unit in units)
    processes = None
    if criteria.exclude is not None and criteria.exclude.similarity is not None:
        processes = 1  # load the model once, and apply it once to each text
        arguments = dataflow.one_process(arguments, None)
        kept = storage.join(output, HASHES)  # `launch` empties it at the end
        criteria = replace(criteria, exclude=replace(criteria.exclude, kept=kept))
    select = Select(output, criteria, rows)
    job = UnitJob(name="select", units=units, transform=select, output=output, processes=processes)
    result = launch(job, arguments)
    export_tsv(result.receipts, tsv_path(output), criteria.by, threads=local_workers(arguments))
    return result


def tsv_path(output: str) -> str:
    """Path of the corpus in ParaNMT's release format."""
    return f"{output.rstrip('/')}.tsv.gz"


def tsv_state(path: str) -> str:
    """Size and final checksum of the TSV: they change if it is emptied, cut or zeroed. Raises a
    UserError if it is missing."""
    with storage.open_file(path) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 8, 0))
        return f"{size}-{stream.read(8).hex()}"


def export_tsv(receipts: Sequence[Receipt], path: str, score: str, threads: int = 1) -> None:
    """Write reference, translation and score, tab-separated, one pair per line, gzip.

    Each part file becomes one gzip member, so that several are compressed at once. Texts hold no
    tabs and line ends: `ingest` and the translators reject them.
    """
    shards = [shard for receipt in receipts for shard in receipt.shards if shard.rows]
    with ThreadPoolExecutor(threads) as pool, storage.writing(path) as stream:
        for at in range(0, len(shards), threads):
            for member in pool.map(_tsv_member, shards[at : at + threads], repeat(score)):
                stream.write(member)
        if not shards:
            stream.write(gzip.compress(b"", mtime=0))


def _tsv_member(shard: Shard, score: str) -> bytes:
    table = read_shard(shard, ["reference", "translation", score])
    values = table[score].cast(pa.string())
    lines = pc.binary_join_element_wise(table["reference"], table["translation"], values, "\t")
    lines = lines.combine_chunks()
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(lines)], pa.int64()), lines)
    text = pc.binary_join(whole, "\n")[0].as_buffer()  # joins and compresses without the GIL
    return gzip.compress(text.to_pybytes() + b"\n", 6, mtime=0)


@dataclass(eq=False)
class _WriteCorpus(UnitDoFn):
    criteria: Criteria

    def make(self, unit: Unit, duplicates: np.ndarray, bound: Targets | None = None) -> Receipt:
        table = read_shard(unit.shard)
        reasons, _ = decide(table, self.criteria)
        reasons[duplicates] = _REPEATS
        if bound is not None:
            for name, rows in _drawn_from(table, reasons, self.criteria):
                column = _column(table, rows)
                beyond = position(column, bound.get(name, []), self.criteria.seed) > 0
                more = f"more than the share of generator {name}"
                reasons[rows[beyond]] = more if self.criteria.size is None else _NOT_DRAWN
        accepted = pa.array(reasons == "")
        names = [name for name in schema.ROW if name in table.column_names]
        rejected = table.select(names).append_column(schema.REASON, pa.array(reasons, pa.string()))
        rejected = rejected.filter(pc.invert(accepted))
        return self.commit(unit, table.num_rows, [(unit.name, table.filter(accepted), rejected)])


def _kinds(table: pa.Table, criteria: Criteria) -> np.ndarray:
    """Kind of each row, text [n]; a number to draw is set per kind (generator or all)."""
    if criteria.per_generator is None:
        return np.full(len(table), "sample", object)
    return np.asarray(table[schema.GENERATOR.name].to_pylist(), object)


def _drawn_from(
    table: pa.Table, reasons: np.ndarray, criteria: Criteria
) -> Iterator[tuple[str, np.ndarray]]:
    kinds, accepted = _kinds(table, criteria), reasons == ""
    for name in sorted({*kinds[accepted]} or {"sample"}):
        yield name, np.flatnonzero(accepted & (kinds == name))


def _column(table: pa.Table, rows: np.ndarray) -> Column:
    """Set all scores equal, so that the hashes of the ids alone order the rows."""
    ids = schema.row_ids(table.take(pa.array(rows)))
    return Column(np.zeros(len(rows), np.uint32), ids)
