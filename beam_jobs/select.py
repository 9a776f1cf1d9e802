"""Selection: write the pairs that meet the criteria, as Parquet and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import near_duplicates, storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.options import local_workers
from paraloom.beam_jobs.engine.part_files import decode, encode
from paraloom.beam_jobs.engine.shards import Receipt, Unit, read_shard
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.near_duplicates import Near, Texts, WithNearDuplicates
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.transforms.corpus_text import export_tsv, tsv_path, write_member
from paraloom.beam_jobs.transforms.criteria import REPEATS, TEXTS, Criteria, decide, kinds_of
from paraloom.beam_jobs.transforms.duplicates import Hashes, WithDuplicates, temporary_prefix
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.beam_jobs.transforms.order_statistics import (
    Column,
    Columns,
    OrderStatistics,
    Targets,
    position,
)


class Select(beam.PTransform):
    """Selects pairs from the shards of units, and returns receipts.

    `rows` is the approximate number of rows. With `text`, the pairs are also written as text.
    """

    def __init__(self, output: str, criteria: Criteria, rows: int, *, text: bool = False):
        super().__init__()
        self.output, self.criteria, self.rows, self.text = output, criteria, rows, text

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Apply the criteria and find duplicates. Then read the pairs again, to write them."""
        criteria, decided = self.criteria, _Decided(temporary_prefix(self.output), self.criteria)
        where, least = (self.rows, self.output), criteria.near_duplicates
        joined = units | "Duplicate pairs" >> WithDuplicates(decided.hashes, *where)
        joined = joined | "Near-copies" >> WithNearDuplicates(decided.texts, *where, least)
        write = _WriteCorpus(self.output, decided, self.text)
        if not criteria.draws:
            return joined | "Write" >> beam.ParDo(write)
        drawing = OrderStatistics(decided.accepted, criteria.ranks, seed=criteria.seed)
        bound = joined | "Sample" >> drawing
        return joined | "Write" >> beam.ParDo(write, beam.pvalue.AsSingleton(bound))


@dataclass(frozen=True)
class _Decided:
    """Applies the criteria once, and stores the decisions in files for later scans."""

    prefix: str
    criteria: Criteria

    def hashes(self, unit: Unit) -> Iterator[Hashes]:
        table = read_shard(unit.shard, self.criteria.columns)
        reasons, hashed = decide(table, self.criteria)
        names = [n for n in (*schema.ROW, schema.GENERATOR.name) if n in table.column_names]
        kept = table.select(names).append_column(schema.REASON, pa.array(reasons, pa.string()))
        storage.write_bytes(f"{self.prefix}-{unit.index}", encode(kept))
        yield hashed, np.flatnonzero(reasons == "")

    def texts(self, element: tuple[Unit, np.ndarray]) -> Iterator[Texts]:
        """Yield the texts of the rows that are accepted before the search for near-copies."""
        rows = np.flatnonzero(self.read(*element)[1] == "")
        table = read_shard(element[0].shard, [*TEXTS, "id"]).take(pa.array(rows)).combine_chunks()
        first, second = (normalised(table[side].combine_chunks()) for side in TEXTS)
        yield Texts(rows, first, second, table["id"].combine_chunks())

    def read(
        self, unit: Unit, duplicates: np.ndarray, near: Near | None = None
    ) -> tuple[pa.Table, np.ndarray]:
        """Return a table of ids and generators, and each row's reason for rejection, or ""."""
        kept = decode(storage.read_bytes(f"{self.prefix}-{unit.index}"))
        reasons = kept[schema.REASON.name].to_numpy()
        reasons[duplicates] = REPEATS
        if near is not None:
            reasons[near[0]] = near_duplicates.reasons(near[1])
        return kept, reasons

    def accepted(self, element: tuple[Unit, np.ndarray, Near | None]) -> Columns:
        kept, reasons = self.read(*element)
        return {name: _column(kept, rows) for name, rows in self.drawn_from(kept, reasons)}

    def drawn_from(self, kept: pa.Table, reasons: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the name and the accepted row numbers of each group that is sampled separately."""
        kinds, accepted = kinds_of(kept, self.criteria), reasons == ""
        for name in sorted({*kinds[accepted]} or {"sample"}):
            yield name, np.flatnonzero(accepted & (kinds == name))


def run(units: Sequence[Unit], output: str, criteria: Criteria, arguments: Sequence[str]) -> Result:
    """Select pairs from `units`, write them into the folder `output`, and export a TSV file."""
    storage.remove(tsv_path(output))
    rows = sum(unit.rows for unit in units)
    select, processes = Select(output, criteria, rows, text=True), None
    if criteria.exclude is not None and criteria.exclude.similarity is not None:
        processes = 1  # so that the model is loaded once
        arguments = dataflow.one_process(arguments, None)
    result = launch("select", units, select, output, arguments, processes=processes)
    export_tsv(output, result.receipts, criteria.by, local_workers(arguments))
    return result


@dataclass(eq=False)
class _WriteCorpus(UnitDoFn):
    decided: _Decided
    text: bool

    def make(
        self, unit: Unit, duplicates: np.ndarray, near: Near | None, bound: Targets | None = None
    ) -> Receipt:
        table, criteria = read_shard(unit.shard), self.decided.criteria
        kept, reasons = self.decided.read(unit, duplicates, near)
        if bound is not None:
            for name, rows in self.decided.drawn_from(kept, reasons):
                column = _column(kept, rows)
                beyond = position(column, bound.get(name, []), criteria.seed) > 0
                reasons[rows[beyond]] = criteria.not_drawn(name)
        accepted = pa.array(reasons == "")
        names = [name for name in schema.ROW if name in table.column_names]
        rejected = table.select(names).append_column(schema.REASON, pa.array(reasons, pa.string()))
        rejected, corpus = rejected.filter(pc.invert(accepted)), table.filter(accepted)
        wanted = self.text and len(corpus)
        text = write_member(self.output, unit.name, corpus, criteria.by) if wanted else None
        return self.commit(table.num_rows, [(unit.name, corpus, rejected)], text)


def _column(table: pa.Table, rows: np.ndarray) -> Column:
    """Return a column of equal scores, so that the rows are ordered by hashes of their ids."""
    ids = schema.row_ids(table.take(pa.array(rows)))
    return Column(np.zeros(len(rows), np.uint32), ids)
