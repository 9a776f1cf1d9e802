"""Selection: writes the corpus of the pairs that meet the criteria, as Parquet and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result, UnitJob, launch
from paraloom.beam_jobs.engine.options import local_workers
from paraloom.beam_jobs.engine.shards import Receipt, Unit, read_shard
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.transforms.corpus_text import export_tsv, tsv_path
from paraloom.beam_jobs.transforms.criteria import NOT_DRAWN, REPEATS, Criteria, decide, kinds_of
from paraloom.beam_jobs.transforms.duplicates import Hashes, WithDuplicates
from paraloom.beam_jobs.transforms.order_statistics import (
    Column,
    Columns,
    OrderStatistics,
    Targets,
    position,
)


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
            reasons[duplicates] = REPEATS
            return {name: _column(table, of) for name, of in _drawn_from(table, reasons, criteria)}

        joined = units | "Duplicate pairs" >> WithDuplicates(hashes, self.rows, self.output)
        write = _WriteCorpus(self.output, criteria)
        if not criteria.draws:
            return joined | "Write" >> beam.ParDo(write)
        bound = joined | "Sample" >> OrderStatistics(accepted, criteria.ranks, seed=criteria.seed)
        return joined | "Write" >> beam.ParDo(write, beam.pvalue.AsSingleton(bound))


def run(units: Sequence[Unit], output: str, criteria: Criteria, arguments: Sequence[str]) -> Result:
    """Select from `units` into `output`, and export the TSV."""
    storage.remove(tsv_path(output))
    rows = sum(unit.rows for unit in units)
    select = Select(output, criteria, rows)
    similar = criteria.exclude is not None and criteria.exclude.similarity is not None
    processes = 1 if similar else None  # load the model once
    job = UnitJob(name="select", units=units, transform=select, output=output, processes=processes)
    result = launch(job, arguments)
    export_tsv(result.receipts, tsv_path(output), criteria.by, threads=local_workers(arguments))
    return result


@dataclass(eq=False)
class _WriteCorpus(UnitDoFn):
    criteria: Criteria

    def make(self, unit: Unit, duplicates: np.ndarray, bound: Targets | None = None) -> Receipt:
        table = read_shard(unit.shard)
        reasons, _ = decide(table, self.criteria)
        reasons[duplicates] = REPEATS
        if bound is not None:
            for name, rows in _drawn_from(table, reasons, self.criteria):
                column = _column(table, rows)
                beyond = position(column, bound.get(name, []), self.criteria.seed) > 0
                more = f"more than the share of generator {name}"
                reasons[rows[beyond]] = more if self.criteria.size is None else NOT_DRAWN
        accepted = pa.array(reasons == "")
        names = [name for name in schema.ROW if name in table.column_names]
        rejected = table.select(names).append_column(schema.REASON, pa.array(reasons, pa.string()))
        rejected = rejected.filter(pc.invert(accepted))
        return self.commit(unit, table.num_rows, [(unit.name, table.filter(accepted), rejected)])


def _drawn_from(
    table: pa.Table, reasons: np.ndarray, criteria: Criteria
) -> Iterator[tuple[str, np.ndarray]]:
    kinds, accepted = kinds_of(table, criteria), reasons == ""
    for name in sorted({*kinds[accepted]} or {"sample"}):
        yield name, np.flatnonzero(accepted & (kinds == name))


def _column(table: pa.Table, rows: np.ndarray) -> Column:
    """Set all scores equal, so that the hashes of the ids alone order the rows."""
    ids = schema.row_ids(table.take(pa.array(rows)))
    return Column(np.zeros(len(rows), np.uint32), ids)
