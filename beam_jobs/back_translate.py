"""Back-translation: translates the source of every pair, and scores the translation.

With `direction=PIVOT`, the job makes the sources of plain text: it translates the references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.shared import Shared

from paraloom.beam_jobs.engine.crash_recovery import begin
from paraloom.beam_jobs.engine.launch import Result, UnitJob, launch, threads_here
from paraloom.beam_jobs.engine.rejections import Limit
from paraloom.beam_jobs.engine.shards import Measurements, Receipt, Saved, Unit, read_shard
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.transforms.translations import (
    BACK,
    Direction,
    TranslatorFactory,
    count,
    drawing_seed,
    with_translations,
)
from paraloom.models.cpu import cores
from paraloom.models.languages import ENGLISH
from paraloom.models.text.tokens import moses_tokens

VERSION = 1
"""Bump when the job's rows change for the same input."""


@dataclass(frozen=True, kw_only=True)
class TranslationJob:
    """What a job does: the model, and what its translations depend on besides.

    Attributes:
        accelerator: Beam resource hint for the translating stage only, such as
            `type:nvidia-tesla-t4;count:1;install-nvidia-driver`.
        seed: the seed of translations drawn at random.
        distinct: translate equal texts of a shard once.
        direction: `BACK` or `PIVOT`.
    """

    model: TranslatorFactory
    accelerator: str | None = None
    seed: int = 1
    distinct: bool = False
    direction: Direction = BACK


def run(
    units: Sequence[Unit],
    output: str,
    job: TranslationJob,
    arguments: Sequence[str],
    *,
    max_rejected: float = 1.0,
) -> Result:
    """Translate `units` into `output`.

    On this machine one process translates with all cores, so that the model is loaded once.

    Args:
        max_rejected: largest share of rows that may be rejected.
    """
    translate = beam.ParDo(_Translate(output, job, threads_here(arguments)))
    if job.accelerator:
        translate = translate.with_resource_hints(accelerator=job.accelerator)
        arguments = dataflow.one_process(arguments, job.accelerator)
    work = UnitJob(
        name=job.direction.job,
        units=units,
        transform="Translate" >> translate,
        output=output,
        processes=1,
        limit=Limit(share=max_rejected),
    )
    return launch(work, arguments)


@dataclass(eq=False)
class _Translate(UnitDoFn):
    """Translates a shard at a time; all instances in a process share one translator."""

    job: TranslationJob
    threads: int | None  # of a worker process; None: all
    shared: Shared = field(default_factory=Shared)

    def setup(self) -> None:
        threads = self.threads or cores()
        loading = partial(self.job.model.open, threads, self.job.accelerator)
        self.translator: Any = self.shared.acquire(loading)

    def make(self, unit: Unit) -> Receipt:
        table, job = read_shard(unit.shard), self.job
        texts = table[job.direction.text].combine_chunks()
        given = texts.dictionary_encode() if job.distinct else None
        # Translations drawn at random depend on the shard, on any worker and in any order.
        seed = drawing_seed(job.seed, unit.shard.digest)
        attempt = begin(self.output, unit.name, unit.key)
        hints = attempt if attempt.deaths else None
        distinct = texts if given is None else given.dictionary
        made, counts = self.translator.translate(distinct, hints, seed=seed)
        count(counts)
        numbers = asdict(counts) | {"attempts": attempt.number}
        numbers |= {n: getattr(self.translator, n) for n in ("converted", "compute_type")}
        if given is not None:
            codes = given.indices.to_numpy()
            made = _spread(made, codes, unit.candidates)
            numbers["saved"] = {"input.unique": self._saved(texts, codes)}
        parts = with_translations(table, made, unit.candidates, job.direction)
        receipt = self.commit(unit, unit.rows, [(unit.name, *parts)], Measurements(**numbers))
        attempt.over()
        return receipt

    def _saved(self, texts: pa.Array, codes: np.ndarray) -> Saved:
        """The texts that were not translated, because they repeat others."""
        languages = self.job.model.languages
        repeats = np.delete(np.arange(len(codes)), np.unique(codes, return_index=True)[1])
        language = (languages.source if languages else None) or ENGLISH
        tokens = moses_tokens(texts.take(pa.array(repeats)), language)
        return Saved(rows=len(repeats), tokens=len(tokens.values))


def _spread(made: pa.RecordBatch, codes: np.ndarray, candidates: int) -> pa.RecordBatch:
    """The translations of every text, from those of the distinct ones that its code names."""
    rows = codes[:, None].astype(np.int64) * candidates + np.arange(candidates)
    return made.take(pa.array(rows.ravel()))
