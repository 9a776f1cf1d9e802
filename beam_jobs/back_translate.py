"""Back-translation: translates the source of every pair, and scores the translation.

With `direction=PIVOT`, the job makes the sources of plain text: it translates the references.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.shared import Shared
from apache_beam.utils.windowed_value import WindowedValue
from pydantic import Field

from paraloom.beam_jobs.engine import crash_recovery
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
from paraloom.models.nmt.options import Precision
from paraloom.models.text.tokens import moses_tokens

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import Counters

VERSION = 2
"""Bump when the job's rows change for the same input."""


class Translated(Measurements):
    """What the job measures of a shard, besides the translator's `Counters`."""

    saved: dict[str, Saved] = Field(default_factory=dict)
    """Translations saved, by the key of the configuration."""
    converted: str | None = None
    """SHA-256 of the converted model that translated."""
    compute_type: Precision | None = None
    """Number type of its weights."""


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


_AT_ONCE = 64  # units under way, at most


@dataclass(eq=False)
class _Translate(UnitDoFn):
    """Translates shards, several at once on GPUs; all instances in a process share a translator.

    One shard is read and another written while others are decoded, and the last batches of a shard
    are decoded beside the first of the next.
    """

    job: TranslationJob
    threads: int | None  # of a worker process; None: all
    shared: Shared = field(default_factory=Shared)

    def setup(self) -> None:
        threads = self.threads or cores()
        loading = partial(self.job.model.open, threads, self.job.accelerator)
        self.translator: Any = self.shared.acquire(loading)
        self.pool = ThreadPoolExecutor(_AT_ONCE)
        self.counters: dict[str, Counters] = {}  # of units that are done, by name
        self.ended = {"last": 0.0}  # when a unit was done

    def start_bundle(self) -> None:
        """Begin with no unit under way."""
        self.under_way = deque[tuple[int, Future[Receipt]]]()  # with its rows

    def process(self, element: Any, side_input: Any = None) -> Iterator[Receipt]:
        """Begin a unit; yield the receipts of earlier ones, as many as must be done."""
        alone = not self.translator.under_way or crash_recovery.deaths(self.output, element.name)
        yield from self._done(0 if alone else self.translator.under_way - element.rows)
        mine = copy(self)  # with a clock of its own
        done = self.pool.submit(lambda: next(UnitDoFn.process(mine, element)))
        self.under_way.append((element.rows, done))
        if alone:
            yield from self._done(0)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the receipts of the units that are still under way."""
        window = GlobalWindow()
        for receipt in self._done(0):
            yield WindowedValue(receipt, window.max_timestamp(), [window])

    def teardown(self) -> None:
        """End the threads."""
        self.pool.shutdown(cancel_futures=True)

    def _done(self, rows: int) -> Iterator[Receipt]:
        """Wait until at most so many rows are under way, or one unit if `rows` is not 0; count
        here: Beam's counters know no other thread."""
        while len(self.under_way) > (rows != 0) and (
            len(self.under_way) == _AT_ONCE or sum(of for of, _ in self.under_way) > rows
        ):
            receipt = self.under_way.popleft()[1].result()
            if made := self.counters.pop(receipt.name, None):
                count(made)
            yield receipt

    def make(self, unit: Unit) -> Receipt:
        table, job = read_shard(unit.shard), self.job
        texts = table[job.direction.text].combine_chunks()
        given = texts.dictionary_encode() if job.distinct else None
        # Translations drawn at random depend on the shard, on any worker and in any order.
        seed = drawing_seed(job.seed, unit.shard.digest)
        attempt = crash_recovery.begin(self.output, unit.name, unit.key)
        hints = attempt if attempt.deaths else None
        distinct = texts if given is None else given.dictionary
        made, counts = self.translator.translate(distinct, hints, seed=seed)
        self.counters[unit.name] = counts
        numbers = asdict(counts) | {"attempts": attempt.number}
        numbers |= {n: getattr(self.translator, n) for n in ("converted", "compute_type")}
        if given is not None:
            codes = given.indices.to_numpy()
            made = _spread(made, codes, unit.candidates)
            numbers["saved"] = {"input.unique": self._saved(texts, codes)}
        parts = with_translations(table, made, unit.candidates, job.direction)
        # Of several units at once, each took the time since another was done.
        self._started = max(self._started, self.ended["last"])
        receipt = self.commit(unit, unit.rows, [(unit.name, *parts)], Translated(**numbers))
        self.ended["last"] = time.monotonic()
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
