"""Scoring: every scorer of the configuration adds one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.shared import Shared

from beam_jobs.io import schema
from beam_jobs.io.remote import localise
from beam_jobs.io.shards import Receipt, Unit, read_shard
from beam_jobs.runners import dataflow
from beam_jobs.runners.launch import Result, launch, local_workers
from beam_jobs.transforms.unit_dofn import UnitDoFn
from models.cpu import cores
from models.languages import ENGLISH
from models.nmt.families.base import Languages
from models.nmt.options import NmtOptions
from models.scorers import SCORERS, PairScorer

VERSION = 1
"""Bump when the job's rows change for the same input."""


MODEL = "translation_model"
"""The resource that is a translation model, which a process loads once."""


class ScoringModel(NamedTuple):
    """A translation model, and how it computes."""

    model: str
    options: NmtOptions
    languages: Languages


def score_table(
    table: pa.Table, scorer: PairScorer, scorers: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Add the columns of `scorers` that the table does not have yet.

    Returns the scored rows, and those with a score that is not finite, with a `reason`.
    """
    texts = ["reference", "translation", *(["source"] if scorer.reads_source else [])]
    columns = scorer.score(*(table[name].combine_chunks() for name in texts))
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
    model: ScoringModel | None = None,
    accelerator: str | None = None,
) -> Result:
    """Score `units` into `output`.

    With a model, one process scores with all cores of this machine, so that it is loaded once.

    Args:
        scorers: the scores of the output; those that the input already has are copied.
        resources: paths of the scorers' resources, by name (`models.scorers`).
        language: of references and translations.
        model: for scorers that read a translation model.
        accelerator: Beam resource hint, if there is a model.
    """
    threads = None if any(a.startswith("--runner") for a in arguments) else local_workers(arguments)
    dofn = _Score(output, tuple(scorers), dict(resources or {}), language, model, threads)
    score = beam.ParDo(dofn)
    if model and accelerator:
        score = score.with_resource_hints(accelerator=accelerator)
        arguments = dataflow.one_process(arguments)
    processes = 1 if model else None
    return launch("score", units, "Score" >> score, output, arguments, processes=processes)


@dataclass(eq=False)
class _Score(UnitDoFn):
    scorers: tuple[str, ...]
    resources: dict[str, str]
    language: str
    model: ScoringModel | None = None
    threads: int | None = None  # for the model; None: all cores
    scorer: PairScorer | None = None

    def __post_init__(self) -> None:
        self.shared = Shared()

    def setup(self) -> None:
        super().setup()
        if "encoder" in self.resources:
            import torch

            torch.set_num_threads(1)

    def make(self, unit: Unit) -> Receipt:
        table = read_shard(unit.shard)
        if self.scorer is None:  # all units of a worker have the same columns
            names = [name for name in self.scorers if name not in table.column_names]
            resources: dict[str, Any] = {n: localise(path) for n, path in self.resources.items()}
            if any(name in SCORERS and SCORERS[name].resource_name == MODEL for name in names):
                resources[MODEL] = self.shared.acquire(self._load)
            self.scorer = PairScorer(names, language=self.language, **resources)
        scored, rejected = score_table(table, self.scorer, self.scorers)
        return self.commit(unit, table.num_rows, [(unit.name, scored, rejected)])

    def _load(self) -> Any:
        from models.nmt.translate import Translator

        assert self.model is not None, "the job was not given the model"
        return Translator(
            localise(self.model.model),
            self.model.options,
            languages=self.model.languages,
            threads=self.threads or cores(),
        )
