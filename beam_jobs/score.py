"""Scoring: every scorer of the configuration adds one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa

from beam_jobs.io import schema
from beam_jobs.io.remote import localise
from beam_jobs.io.shards import Receipt, Unit, read_shard
from beam_jobs.runners.launch import Result, launch
from beam_jobs.transforms.unit_dofn import UnitDoFn
from models.languages import ENGLISH
from models.scorers import PairScorer

VERSION = 1
"""Bump when the job's rows change for the same input."""


def score_table(
    table: pa.Table, scorer: PairScorer, scorers: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Add the columns of `scorers` that the table does not have yet.

    Returns the scored rows, and those with a score that is not finite, with a `reason`.
    """
    columns = scorer.score(
        table["reference"].combine_chunks(), table["translation"].combine_chunks()
    )
    target = schema.scored(tuple(scorers), candidates=schema.has_candidates(table))
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


def run(
    units: Sequence[Unit],
    output: str,
    scorers: Sequence[str],
    resources: Mapping[str, str] | None,
    arguments: Sequence[str],
    *,
    language: str = ENGLISH,
) -> Result:
    """Score `units` into `output`.

    Args:
        scorers: the scores of the output; those that the input already has are copied.
        resources: paths of the scorers' resources, by name (`models.scorers`).
        language: of references and translations.
    """
    score = "Score" >> beam.ParDo(_Score(output, tuple(scorers), dict(resources or {}), language))
    return launch("score", units, score, output, arguments)


@dataclass(eq=False)
class _Score(UnitDoFn):
    scorers: tuple[str, ...]
    resources: dict[str, str]
    language: str
    scorer: PairScorer | None = None

    def setup(self) -> None:
        super().setup()
        if "encoder" in self.resources:
            import torch

            torch.set_num_threads(1)

    def make(self, unit: Unit) -> Receipt:
        table = read_shard(unit.shard)
        if self.scorer is None:  # all units of a worker have the same columns
            names = [name for name in self.scorers if name not in table.column_names]
            resources = {name: localise(path) for name, path in self.resources.items()}
            self.scorer = PairScorer(names, language=self.language, **resources)
        scored, rejected = score_table(table, self.scorer, self.scorers)
        return self.commit(unit, table.num_rows, [(unit.name, scored, rejected)])
