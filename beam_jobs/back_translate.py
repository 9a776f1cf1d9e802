"""Back-translation: translate the source of every pair, and score the translation.

With `direction=PIVOT`, the input is plain text. The column `reference` is translated, and the
translations become the sources.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.shared import Shared
from pydantic import Field

from paraloom.beam_jobs.engine import crash_recovery
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.options import threads_here
from paraloom.beam_jobs.engine.rejections import Limit
from paraloom.beam_jobs.engine.shards import Measurements, Receipt, Saved, Unit, read_shard
from paraloom.beam_jobs.engine.unit_dofn import OverlappingDoFn
from paraloom.beam_jobs.reuse import Block, WithKept, earlier, read_kept, spread
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.transforms.translations import (
    BACK,
    Direction,
    TranslatorFactory,
    count,
    drawing_seed,
    with_translations,
)
from paraloom.models.languages import ENGLISH
from paraloom.models.nmt.options import Precision
from paraloom.models.printing import say
from paraloom.models.text.tokens import moses_tokens

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import Counters


class Translated(Measurements):
    """Measurements of a shard. The receipt also has the fields of the translator's `Counters`."""

    # Configuration key, such as `nmt.reuse` -> rows that need no translation because of this key
    saved: dict[str, Saved] = Field(default_factory=dict)
    converted: str | None = None  # SHA-256 of the converted model
    compute_type: Precision | None = None  # number type of the model's weights
    gpus: int = 0  # number of GPUs that the worker process used
    made_by: str = ""  # `TranslationJob.key`


@dataclass(frozen=True, kw_only=True)
class TranslationJob:
    """The model, and the settings of the job."""

    model: TranslatorFactory
    accelerator: str | None = None  # Beam resource hint for the step that translates
    seed: int = 1  # seed of translations that are drawn at random
    distinct: bool = False  # whether to translate equal texts of a shard only once
    direction: Direction = BACK
    key: str = ""  # digest of everything that translations depend on; "" disables reuse
    reuse: Sequence[str] = ()  # stage folders of other runs, whose translations may be reused


def run(
    units: Sequence[Unit],
    output: str,
    job: TranslationJob,
    arguments: Sequence[str],
    *,
    max_rejected: float = 1.0,
) -> Result:
    """Translate `units`, and write the translations into the folder `output`.

    Raise a UserError if the share of rejected rows is larger than `max_rejected`. Unless the
    user chose a Beam runner, one worker does all the work, so each device loads the model once.
    """
    translate = beam.ParDo(_Translate(output, job, threads_here(arguments)))
    if job.accelerator:
        translate = translate.with_resource_hints(accelerator=job.accelerator)
    known = earlier(units, output, job.key, job.reuse) if job.key else []
    if known:
        translate = WithKept(known, units, job.direction, output) | translate
    arguments = dataflow.one_process(arguments, job.accelerator)
    name, step, limit = job.direction.job, "Translate" >> translate, Limit(share=max_rejected)
    result = launch(name, units, step, output, arguments, processes=1, limit=limit)
    if known:
        made = f"sentences translated: {result.metrics.get('sentences', 0):,}"
        say(f"{name}: {made}; the other translations are from finished shards")
    return result


@dataclass(eq=False)
class _Translate(OverlappingDoFn):
    job: TranslationJob
    threads: int | None  # per worker process; None: all cores
    shared: Shared = field(default_factory=Shared)

    def setup(self) -> None:
        super().setup()
        loading = partial(self.job.model.open_each, self.threads, self.job.accelerator)
        self.translator: Any = self.shared.acquire(loading)
        self.counters: dict[str, Counters] = {}  # by unit name; `ended` reports and removes them
        self.latest = {"ended": 0.0}  # time when the latest unit finished

    def room(self, unit: Unit) -> int:
        most = self.translator.under_way
        alone = not most or crash_recovery.deaths(self.output, unit.name)
        return 0 if alone else max(most - unit.rows, 1)

    def ended(self, receipt: Receipt) -> None:
        if made := self.counters.pop(receipt.name, None):
            count(made)

    def make(self, unit: Unit, kept: Sequence[Block] = ()) -> Receipt:
        table, job = read_shard(unit.shard), self.job
        texts = table[job.direction.text].combine_chunks()
        given = texts.dictionary_encode() if job.distinct or kept else None
        # Random translations depend only on the shard, not on the worker or the order of shards.
        seed = drawing_seed(job.seed, unit.shard.digest)
        attempt = crash_recovery.begin(self.output, unit.name, unit.key)
        hints = attempt if attempt.deaths else None
        distinct = texts if given is None else given.dictionary
        rows, known = read_kept(kept, unit.candidates)
        new = np.delete(np.arange(len(distinct)), rows)
        codes = np.arange(len(texts)) if given is None else given.indices.to_numpy()
        translated = np.unique(codes, return_index=True)[1][new]
        attempt.translating(translated.tolist())
        made, counts = self.translator.translate(distinct.take(pa.array(new)), hints, seed=seed)
        self.counters[unit.name] = counts
        numbers = asdict(counts) | {"attempts": attempt.number, "made_by": job.key}
        numbers |= {n: getattr(self.translator, n) for n in ("converted", "compute_type")}
        if self.translator.gpus:
            numbers["gpus"] = self.translator.gpus
        if kept:
            made = pa.concat_tables([pa.table(made).cast(known.schema), known])
            made = made.take(pa.array(spread(np.argsort(np.r_[new, rows]), unit.candidates)))
        if given is not None:
            made = made.take(pa.array(spread(codes, unit.candidates)))
            spared = texts.take(pa.array(np.delete(np.arange(len(texts)), translated)))
            languages = job.model.languages
            language = (languages.source if languages else None) or ENGLISH
            tokens = len(moses_tokens(spared, language).values)
            saved = Saved(rows=len(spared), tokens=tokens)
            numbers["saved"] = {"nmt.reuse" if kept else "input.unique": saved}
        parts = with_translations(table, made, unit.candidates, job.direction)
        # Units overlap. To count no time twice, a unit's time starts after the previous unit ended.
        started, pieces = max(self._started, self.latest["ended"]), [(unit.name, *parts)]
        receipt = self.commit(unit.rows, pieces, Translated(**numbers), started=started)
        self.latest["ended"] = time.monotonic()
        attempt.over()
        return receipt
