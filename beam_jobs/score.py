"""Scoring: every scorer of the configuration adds one column."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_jobs.io import schema
from beam_jobs.io.remote import local
from beam_jobs.io.shards import Receipt, Unit, commit, finished, read_shard
from beam_jobs.runners.launch import Result, launch
from models.scorers import PairScorer

VERSION = 1
"""Raised when the job's rows change for the same input."""


def score_table(
    table: pa.Table, scorer: PairScorer, scorers: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Add the columns of `scorers` that the table lacks, as translation or scoring left it.

    Rows with a score that is no finite number are set apart.

    Returns:
        the scored rows, and the rejected ones with their `reason`.
    """
    columns = scorer.score(
        table["reference"].combine_chunks(), table["translation"].combine_chunks()
    )
    target = schema.scored(tuple(scorers))
    given = pa.schema([field for field in target if field.name in table.column_names])
    scored = table
    for field in [field for field in target if field.name not in given.names]:
        scored = scored.append_column(field, pa.array(columns[field.name], field.type))
    finite = np.ones(table.num_rows, bool)
    reasons = np.full(table.num_rows, "", object)
    for name in scorers:
        bad = ~np.isfinite(scored[name].to_numpy())
        reasons[bad & finite] = f"{name} is not finite"
        finite &= ~bad
    rejected = table.append_column("reason", pa.array(reasons, pa.string()))
    rejected = rejected.filter(pa.array(~finite))
    return (
        scored.filter(pa.array(finite)).select(target.names).cast(target),
        rejected.cast(schema.rejected(given)),
    )


class Score(beam.PTransform):
    """Units in, receipts out.

    Args:
        scorers: the scores that rows have in the end; those that they bring are kept.
        tables: where the tables that scorers need stand, by their names (`models.scorers`).
    """

    def __init__(self, output: str, scorers: Sequence[str], tables: Mapping[str, str] | None):
        super().__init__()
        self.work = _Score(output, tuple(scorers), dict(tables or {}))

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Score shard by shard."""
        return units | "Score" >> beam.ParDo(self.work)


def run(
    units: Sequence[Unit],
    output: str,
    scorers: Sequence[str],
    tables: Mapping[str, str] | None,
    arguments: Sequence[str],
) -> Result:
    """Score `units` into `output`."""
    return launch("score", units, Score(output, scorers, tables), output, arguments)


class _Score(beam.DoFn):
    def __init__(self, output: str, scorers: tuple[str, ...], tables: dict[str, str]):
        self.output, self.scorers, self.tables = output, scorers, tables
        self.scorer: PairScorer | None = None

    def setup(self) -> None:
        pa.set_cpu_count(1)  # one worker, one core: the runner decides how many there are
        if "encoder" in self.tables:
            import torch

            torch.set_num_threads(1)

    def process(self, unit: Unit) -> Iterator[Receipt]:
        done = finished(self.output, unit.name, unit.key)
        yield done or self.score(unit)

    def score(self, unit: Unit) -> Receipt:
        started = time.monotonic()
        table = read_shard(unit.shard)
        if self.scorer is None:  # once a worker: all units have the same columns
            names = [name for name in self.scorers if name not in table.column_names]
            self.scorer = PairScorer(names, **{n: local(path) for n, path in self.tables.items()})
        scored, rejected = score_table(table, self.scorer, self.scorers)
        pieces = [(unit.name, scored, rejected)]
        return commit(self.output, unit.name, unit.key, table.num_rows, pieces, started=started)
