"""Open translation models on workers, and divide rows into translated and rejected rows."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.storage.remote import localise
from paraloom.models.nmt import gpu
from paraloom.models.nmt.convert import adopt
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.gpu_processes import GpuProcesses
from paraloom.models.nmt.options import NmtOptions

if TYPE_CHECKING:
    from paraloom.models.nmt.translate import Counters


class Direction(NamedTuple):
    """The column to translate, and the columns of the result."""

    job: str
    text: str  # column to translate
    output: pa.Schema  # without `schema.CANDIDATE`
    added: dict[str, str]  # new column -> column in the output of `Translator.translate`


_ADDED = schema.BACK_TRANSLATE.names[len(schema.INGEST) :]
BACK = Direction("back_translate", "source", schema.BACK_TRANSLATE, {n: n for n in _ADDED})
"""Translate the source of each pair into the language of the reference."""

PIVOT = Direction("pivot", "reference", schema.INGEST, {"source": "translation"})
"""Translate plain text (references) into the language of the sources."""

COUNTERS = ("sentences", "tokens", "batches", "milliseconds", "rejects", "retries")


class TranslatorFactory(NamedTuple):
    """Opens a translation model on a worker."""

    model: str
    options: NmtOptions
    languages: Languages | None = None
    conversion: tuple[str, str] | None = None  # folder of a converted model, and its digest

    def open(
        self, threads: int | None, accelerator: str | None = None, only: int | None = None
    ) -> Any:
        """Load the model as a `Translator`. `only` is the index of a GPU; None: use all GPUs."""
        from paraloom.models.nmt.translate import Translator

        options, model = self._options(accelerator), self._fetch()
        return Translator(model, options, languages=self.languages, threads=threads, only=only)

    def open_each(self, threads: int | None, accelerator: str | None) -> Any:
        """Load the model in one process per GPU, or in this process if there is at most one GPU."""
        gpus = gpu.chosen(self._options(accelerator))
        if len(gpus) < 2:
            return self.open(threads, accelerator)
        # Download the model here, because the processes cannot read object stores.
        here = self._replace(model=self._fetch(), conversion=None)
        return GpuProcesses(partial(here.open, threads, accelerator), gpus)

    def _fetch(self) -> str:
        if self.conversion:
            adopt(Path(localise(self.conversion[0])), self.conversion[1])
        return localise(self.model)

    def _options(self, accelerator: str | None) -> NmtOptions:
        if self.options.device == "auto" and gpu.required(accelerator):
            return self.options.replace(device="cuda")
        return self.options


def drawing_seed(seed: int, content: object) -> int:
    """Return a seed for random translations that depends on `seed` and `content`."""
    return int.from_bytes(hashlib.sha256(f"{seed} {content}".encode()).digest()[:4], "little")


def count(counts: Counters) -> None:
    """Add the counts of `Translator.translate` to Beam's counters."""
    from apache_beam.metrics import Metrics

    from paraloom.beam_jobs.engine.launch import NAMESPACE

    numbers = asdict(counts) | {"milliseconds": round(1000 * counts.seconds)}
    for name in COUNTERS:
        Metrics.counter(NAMESPACE, name).inc(numbers[name])


def with_translations(
    table: pa.Table, translations: pa.RecordBatch | pa.Table, candidates: int, direction: Direction
) -> tuple[pa.Table, pa.Table]:
    """Return the translated rows, and the rejected rows with a reason."""
    if candidates > 1:
        number = np.tile(np.arange(candidates, dtype=np.int8), len(table))
        rows = np.repeat(np.arange(len(table)), candidates)
        table = table.take(pa.array(rows)).append_column(schema.CANDIDATE, pa.array(number))
    given = table.schema
    for name, of in direction.added.items():
        table = table.append_column(name, translations[of])
    # The translator calls its input `source`, but the column may be `reference`.
    reason = pc.replace_substring_regex(
        translations["reason"], r"^(empty )?source\b", rf"\1{direction.text}"
    )
    more = [schema.CANDIDATE] if schema.has_candidates(table) else []
    others = [of for of in given if of.name not in (*direction.output.names, schema.CANDIDATE.name)]
    target = pa.schema([*direction.output, *more, *others])
    accepted = table.filter(reason.is_null()).select(target.names).cast(target)
    rejected = table.append_column("reason", reason).filter(reason.is_valid())
    refused = schema.rejected(given)
    return accepted, rejected.select(refused.names).cast(refused)
