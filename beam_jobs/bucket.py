"""Assign each pair its exact decile among all pairs, for every score.

The method is from ParaNMT-50M, sections 3 and 6.3. The sizes of deciles differ by at most one row.
Rows with equal scores are ordered by a hash of their identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.part_files import decode, extended
from paraloom.beam_jobs.engine.shards import Measurements, Receipt, Unit, read_shard, read_whole
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.transforms.merging import by_key
from paraloom.beam_jobs.transforms.order_statistics import (
    Column,
    Columns,
    OrderStatistics,
    Targets,
    position,
    sortable,
)
from paraloom.beam_jobs.transforms.shares import Deciles, decile_ranks


def starts_of_deciles(rows: Mapping[str, int]) -> dict[str, list[int]]:
    """Return the ranks at which deciles start, by score. `rows` maps scores to numbers of rows."""
    return {score: decile_ranks(n) for score, n in rows.items()}


def score_columns(table: pa.Table, scorers: Iterable[str]) -> Columns:
    """Convert the columns of `scorers` into the input of `OrderStatistics`."""
    ids = schema.row_ids(table)
    return {name: Column(sortable(table[name].to_numpy()), ids) for name in scorers}


def deciles_of(table: pa.Table, scorers: Iterable[str], bounds: Targets) -> dict[str, np.ndarray]:
    """Return the decile columns, int8 [n], by name. `bounds` contains the starts of deciles."""
    return {
        schema.decile(name): position(column, bounds.get(name, []))
        for name, column in score_columns(table, scorers).items()
    }


class BucketMeasurements(Measurements):
    """Number of rows, lowest value and highest value in each decile of a shard, by score."""

    deciles: dict[str, Deciles] = Field(default_factory=dict)


class Bucket(beam.PTransform):
    """Assigns deciles to the pairs of units, and returns receipts."""

    def __init__(self, output: str, scorers: Sequence[str]):
        super().__init__()
        self.output, self.scorers = output, tuple(scorers)

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find where deciles start among all pairs, and assign a decile to each pair."""
        scorers = self.scorers

        def read(unit: Unit) -> Columns:
            return score_columns(read_shard(unit.shard, [*schema.ROW, *scorers]), scorers)

        bounds = units | "Bounds" >> OrderStatistics(read, starts_of_deciles)
        return units | "Assign" >> beam.ParDo(
            _AssignDeciles(self.output, scorers), beam.pvalue.AsSingleton(bounds)
        )


def run(
    units: Sequence[Unit], output: str, scorers: Sequence[str], arguments: Sequence[str]
) -> Result:
    """Assign deciles to the rows of `units`, and write the result into `output`."""
    result = launch("bucket", units, Bucket(output, scorers), output, arguments)
    for score, summary in summarise(result.receipts).items():
        if max(summary.rows) - min(summary.rows) > 1:
            raise RuntimeError(f"bucket: deciles of {score} are not exact: {summary.rows}")
    return result


def summarise(receipts: Sequence[Receipt]) -> dict[str, Deciles]:
    """Combine the deciles of all units, and return one `Deciles` per score."""
    of_units = by_key(receipt.measured(BucketMeasurements).deciles for receipt in receipts)
    return {score: _merged(many) for score, many in of_units.items()}


def _merged(many: Sequence[Deciles]) -> Deciles:
    lowest, highest = (
        [[value for value in values if value is not None] for values in zip(*columns, strict=True)]
        for columns in ([d.lowest for d in many], [d.highest for d in many])
    )
    return Deciles(
        rows=[sum(rows) for rows in zip(*(d.rows for d in many), strict=True)],
        lowest=[min(values, default=None) for values in lowest],
        highest=[max(values, default=None) for values in highest],
    )


_NOTHING = pa.schema([schema.REASON]).empty_table()


@dataclass(eq=False)
class _AssignDeciles(UnitDoFn):
    scorers: tuple[str, ...]

    def make(self, unit: Unit, bounds: Targets) -> Receipt:
        data = read_whole(unit.shard)
        more = (schema.GENERATOR.name, "translation_score")
        table = decode(data, list(dict.fromkeys([*schema.ROW, *more, *self.scorers])))
        columns = deciles_of(table, self.scorers, bounds)
        deciles = {
            name: _by_decile(table[name].to_numpy(), columns[schema.decile(name)])
            for name in self.scorers
        }
        target = schema.bucketed(self.scorers, **schema.variant(table))
        target = schema.extended(pq.read_schema(pa.BufferReader(data)), target)
        pieces = [(unit.name, extended(data, pa.table(columns), target), _NOTHING)]
        return self.commit(table.num_rows, pieces, BucketMeasurements(deciles=deciles))


def _by_decile(score: np.ndarray, decile: np.ndarray) -> Deciles:
    parts = [score[decile == k] for k in range(10)]
    return Deciles(
        rows=[len(part) for part in parts],
        lowest=[float(part.min()) if len(part) else None for part in parts],
        highest=[float(part.max()) if len(part) else None for part in parts],
    )
