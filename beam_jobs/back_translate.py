"""Back-translation: translates the source of every pair, and scores the translation."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics import Metrics
from apache_beam.utils.shared import Shared

from beam_jobs.io import schema
from beam_jobs.io.remote import localise
from beam_jobs.io.shards import Measurements, Receipt, Unit, read_shard
from beam_jobs.runners import dataflow
from beam_jobs.runners.crash_recovery import begin
from beam_jobs.runners.launch import NAMESPACE, Result, launch, local_workers
from beam_jobs.transforms.unit_dofn import UnitDoFn
from models.cpu import cores
from models.nmt.families.base import Languages
from models.nmt.options import NmtOptions

VERSION = 1
"""Bump when the job's rows change for the same input."""

COUNTERS = ("sentences", "tokens", "batches", "milliseconds", "rejects", "retries")


class BackTranslate(beam.PTransform):
    """Units in, receipts out; every shard is translated and committed independently.

    Args:
        threads: cores that a worker process may use; None uses all available ones.
        accelerator: Beam resource hint for this stage only, such as
            `type:nvidia-tesla-t4;count:1;install-nvidia-driver`.
        seed: of translations drawn at random.
    """

    def __init__(
        self,
        output: str,
        model: str,
        options: NmtOptions,
        *,
        languages: Languages | None = None,
        threads: int | None = None,
        accelerator: str | None = None,
        seed: int = 1,
    ):
        super().__init__()
        self.dofn = _Translate(output, model, options, languages, threads, seed)
        self.accelerator = accelerator

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Translate unit by unit, on a GPU if the runner can assign one to a stage."""
        translate = beam.ParDo(self.dofn)
        if self.accelerator:
            translate = translate.with_resource_hints(accelerator=self.accelerator)
        return units | "Translate" >> translate


def run(
    units: Sequence[Unit],
    output: str,
    model: str,
    options: NmtOptions,
    arguments: Sequence[str],
    *,
    languages: Languages | None = None,
    accelerator: str | None = None,
    seed: int = 1,
) -> Result:
    """Back-translate `units` into `output`.

    On this machine one process translates with all cores, so that the model is loaded once.
    """
    threads = None if any(a.startswith("--runner") for a in arguments) else local_workers(arguments)
    if accelerator:
        arguments = dataflow.one_process(arguments)
    transform = BackTranslate(
        output,
        model,
        options,
        languages=languages,
        threads=threads,
        accelerator=accelerator,
        seed=seed,
    )
    return launch("back_translate", units, transform, output, arguments, processes=1)


@dataclass(eq=False)
class _Translate(UnitDoFn):
    """Translates a shard at a time; all instances in a process share one translator."""

    model: str
    options: NmtOptions
    languages: Languages | None
    threads: int | None
    seed: int

    def __post_init__(self) -> None:
        self.shared = Shared()
        self.counters = {name: Metrics.counter(NAMESPACE, name) for name in COUNTERS}

    def setup(self) -> None:
        self.translator: Any = self.shared.acquire(self._load)

    def _load(self) -> Any:
        from models.nmt.translate import Translator

        return Translator(
            localise(self.model),
            self.options,
            languages=self.languages,
            threads=self.threads or cores(),
        )

    def make(self, unit: Unit) -> Receipt:
        table = read_shard(unit.shard)
        attempt = begin(self.output, unit.name, unit.key)
        hints = attempt if attempt.number > 1 else None
        try:
            translations, counts = self.translator.translate(
                table["source"].combine_chunks(), hints, seed=self._seed_of(unit)
            )
        except Exception:  # the process did not die
            attempt.under_way([])
            raise
        numbers = asdict(counts)
        self.counters["milliseconds"].inc(round(1000 * numbers["seconds"]))
        for name in numbers.keys() & self.counters.keys():
            self.counters[name].inc(numbers[name])
        table, given = self._by_candidate(table)
        for name in schema.BACK_TRANSLATE.names[len(schema.INGEST) :]:
            table = table.append_column(name, translations[name])
        reason = translations["reason"]
        target = schema.translated(candidates=schema.has_candidates(table))
        accepted = table.filter(reason.is_null()).select(target.names).cast(target)
        rejected = table.append_column("reason", reason).filter(reason.is_valid())
        refused = schema.rejected(given)
        pieces = [(unit.name, accepted, rejected.select(refused.names).cast(refused))]
        measurements = Measurements.model_validate({**numbers, "attempts": attempt.number})
        receipt = self.commit(unit, unit.rows, pieces, measurements)
        attempt.over()
        return receipt

    def _by_candidate(self, table: pa.Table) -> tuple[pa.Table, pa.Schema]:
        """A row for each translation, numbered if there are several; and the schema."""
        count = self.options.candidates
        if count == 1:
            return table, schema.INGEST
        number = np.tile(np.arange(count, dtype=np.int8), len(table))
        table = table.take(pa.array(np.repeat(np.arange(len(table)), count)))
        table = table.append_column(schema.CANDIDATE, pa.array(number))
        return table, pa.schema([*schema.INGEST, schema.CANDIDATE])

    def _seed_of(self, unit: Unit) -> int:
        """A seed of the shard's content: the same on any worker and in any order."""
        digest = hashlib.sha256(f"{self.seed} {unit.shard.digest}".encode()).digest()
        return int.from_bytes(digest[:4], "little")
