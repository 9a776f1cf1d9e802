"""Back-translation: translates the source of every pair, and scores the translation.

With `direction=PIVOT`, the job makes the sources of plain text: it translates the references.
With `distinct`, equal sources are translated once. The translations of the sources that a shard
owns (see `transforms.first_occurrences`) are committed to `distinct/`, and then given to all rows:

    <stage>/distinct/part-….parquet            what translates a row's source (`schema.DISTINCT`)
    <stage>/distinct/receipts/<unit>.json      its key: of the model and of the sources
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.shared import Shared

from paraloom.beam_jobs.io import schema, storage
from paraloom.beam_jobs.io.shards import (
    Measurements,
    Receipt,
    Saved,
    Shard,
    Unit,
    content_key,
    read_receipt,
    read_shard,
    receipts,
    remove_orphans,
)
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.runners.crash_recovery import begin
from paraloom.beam_jobs.runners.launch import Result, UnitJob, launch, threads_here
from paraloom.beam_jobs.runners.rejections import Limit
from paraloom.beam_jobs.transforms.directions import BACK, Direction
from paraloom.beam_jobs.transforms.first_occurrences import (
    Occurrences,
    WithFirstOccurrences,
    distinct_texts,
    slots,
    spread,
)
from paraloom.beam_jobs.transforms.translations import (
    TranslatorFactory,
    by_candidate,
    count,
    drawing_seed,
    join_translations,
    with_translations,
)
from paraloom.beam_jobs.transforms.unit_dofn import UnitDoFn
from paraloom.models.cpu import cores
from paraloom.models.languages import ENGLISH
from paraloom.models.text.tokens import moses_tokens

VERSION = 1
"""Bump when the job's rows change for the same input."""

_TOGETHER = 16
"""Shards per join group; one message carries what a group needs of another shard."""


@dataclass(frozen=True, kw_only=True)
class TranslationJob:
    """What a job does: the model, and what its translations depend on besides.

    Attributes:
        accelerator: Beam resource hint for the translating stage only, such as
            `type:nvidia-tesla-t4;count:1;install-nvidia-driver`.
        seed: the seed of translations drawn at random.
        distinct: translate equal sources of all units once; the key of model and options.
        direction: `directions.BACK` or `directions.PIVOT`.
    """

    model: TranslatorFactory
    accelerator: str | None = None
    seed: int = 1
    distinct: str | None = None
    direction: Direction = BACK

    @property
    def text_language(self) -> str:
        """The language that is translated."""
        languages = self.model.languages
        return (languages.source if languages else None) or ENGLISH


class TranslateUnits(beam.PTransform):
    """Units in, receipts out; every shard is translated and committed independently.

    Args:
        threads: cores that a worker process may use; None uses all available ones.
        rows: approximate number of rows of all units, for `distinct`.
    """

    def __init__(
        self, output: str, job: TranslationJob, *, threads: int | None = None, rows: int = 0
    ):
        super().__init__()
        self.output, self.job, self.threads, self.rows = output, job, threads, rows

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Translate unit by unit, on a GPU if the runner can assign one to a stage."""
        job = self.job
        shared = job.distinct is not None
        folder = distinct_folder(self.output) if shared else self.output
        kind = _TranslateOwned if shared else _Translate
        translate = beam.ParDo(kind(folder, job, self.threads))
        if job.accelerator:
            translate = translate.with_resource_hints(accelerator=job.accelerator)
        if not shared:
            return units | "Translate" >> translate
        return (
            units
            | "Repeated sources"
            >> WithFirstOccurrences(partial(_texts, column=job.direction.text), self.rows)
            | "Balance" >> beam.Reshuffle()
            | "Translate" >> translate.with_output_types(tuple[int, Any])
            | "Join" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(_Join(self.output, job.direction, job.text_language))
        )


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
    threads = threads_here(arguments)
    if job.accelerator:
        arguments = dataflow.one_process(arguments, job.accelerator)
    rows = sum(unit.rows for unit in units)
    transform = TranslateUnits(output, job, threads=threads, rows=rows)
    work = UnitJob(
        name=job.direction.job,
        units=units,
        transform=transform,
        output=output,
        processes=1,
        limit=Limit(share=max_rejected),
    )
    if job.distinct is None:
        return launch(work, arguments)
    units, folder = _chained(units), distinct_folder(output)
    for receipt in receipts(folder):
        if not receipt.key.startswith(job.distinct):
            storage.remove(storage.join(folder, "receipts", f"{receipt.name}.json"))
    result = launch(replace(work, units=units, first=folder), arguments)
    owned = [read_receipt(folder, unit.name) for unit in units]
    remove_orphans(folder, [receipt for receipt in owned if receipt is not None])
    return result


def distinct_folder(output: str) -> str:
    """The folder of the translations of distinct sources."""
    return storage.join(output, "distinct")


def _chained(units: Sequence[Unit]) -> list[Unit]:
    """The units with keys that depend on all earlier units, which may own their sources."""
    found: list[Unit] = []
    for unit in units:
        before = found[-1].key if found else "distinct"
        found.append(replace(unit, key=content_key(before, unit.key)))
    return found


def _texts(unit: Unit, column: str) -> pa.Array:
    return read_shard(unit.shard, [column])[column].combine_chunks()


@dataclass(eq=False)
class _Translate(UnitDoFn):
    """Translates a shard at a time; all instances in a process share one translator."""

    job: TranslationJob
    threads: int | None
    shared: Shared = field(default_factory=Shared)

    def setup(self) -> None:
        threads = self.threads or cores()
        loading = partial(self.job.model.open, threads, self.job.accelerator)
        self.translator: Any = self.shared.acquire(loading)

    def translate(
        self,
        unit: Unit,
        sources: pa.Array,
        content: str,
        commit: Callable[[pa.RecordBatch, Measurements], Receipt],
    ) -> Receipt:
        """Translate a unit's sources; `commit` gets the rows of `Translator.translate`.

        Args:
            content: what seeds the translations drawn at random, on any worker and in any order.
        """
        attempt = begin(self.output, unit.name, unit.key)
        hints = attempt if attempt.deaths else None
        used = self.translator
        seed = drawing_seed(self.job.seed, content)
        translations, counts = used.translate(sources, hints, seed=seed)
        count(counts)
        numbers = asdict(counts) | {"attempts": attempt.number, "converted": used.converted}
        numbers["compute_type"] = used.compute_type
        receipt = commit(translations, Measurements.model_validate(numbers))
        attempt.over()
        return receipt

    def make(self, unit: Unit) -> Receipt:
        table, direction = read_shard(unit.shard), self.job.direction

        def commit(translations: pa.RecordBatch, measurements: Measurements) -> Receipt:
            found = with_translations(table, translations, unit.candidates, direction)
            return self.commit(unit, unit.rows, [(unit.name, *found)], measurements)

        sources = table[direction.text].combine_chunks()
        return self.translate(unit, sources, unit.shard.digest, commit)


class _TranslateOwned(_Translate):
    """Translates the sources that a unit owns, and sends them to the units that repeat them."""

    def process(self, element: Any, side_input: Any = None) -> Iterator[Any]:
        unit, occurrences = element
        sources = _texts(unit, self.job.direction.text)
        _, first = distinct_texts(sources)
        rows = np.setdiff1d(first, occurrences.repeats, assume_unique=True)
        owned = sources.take(pa.array(rows))
        key = f"{self.job.distinct}-{content_key(rows.tolist(), owned.to_pylist())}"
        work = replace(unit, key=key), rows, owned
        (receipt,) = super().process(work)
        (shard,) = receipt.shards
        yield unit.index // _TOGETHER, (unit, shard)
        if len(occurrences.requests):
            yield from _messages(read_shard(shard), occurrences)

    def make(self, unit: Unit, rows: np.ndarray, owned: pa.Array) -> Receipt:  # type: ignore[override]
        def commit(translations: pa.RecordBatch, measurements: Measurements) -> Receipt:
            source, candidate = by_candidate(len(rows), unit.candidates)
            columns = [pa.array(rows[source], pa.int32()), candidate, *translations.columns]
            piece = unit.name, pa.table(columns, schema.DISTINCT), schema.DISTINCT.empty_table()
            rejected = Counter(filter(None, translations["reason"].to_pylist()))
            numbers = {"shard_rows": unit.rows, "rejected": dict(rejected.most_common())}
            measured = measurements.model_copy(update=numbers)
            return self.commit(unit, len(source), [piece], measured)

        # The shard has more columns: if they change, these translations stay.
        return self.translate(unit, owned, unit.key, commit)


def _messages(translated: pa.Table, occurrences: Occurrences) -> Iterator[tuple[int, Any]]:
    """The translations that other units request, by group of units."""
    requests = occurrences.requests
    groups = requests[:, 1] // _TOGETHER
    rows = translated["row"].to_numpy()
    for group in np.unique(groups):
        wanted = requests[groups == group]
        # A row may have several translations, and several units may want it.
        request, at = slots(rows, wanted[:, 0])
        part = translated.take(pa.array(at))
        part = part.set_column(0, "row", pa.array(wanted[request, 2], pa.int32()))
        units = pa.array(wanted[request, 1], pa.int32())
        (batch,) = part.append_column("unit", units).combine_chunks().to_batches()
        yield int(group), zlib.compress(batch.serialize().to_pybytes(), 1)


@dataclass(eq=False)
class _Join(UnitDoFn):
    """Gives every row of a group of units the translation of its source."""

    direction: Direction
    text_language: str

    def process(self, element: Any, side_input: Any = None) -> Iterator[Receipt]:
        _, items = element
        units: list[tuple[Unit, Shard]] = []
        received = [_RECEIVED.empty_table()]
        for item in items:
            if isinstance(item, bytes):
                data = pa.py_buffer(zlib.decompress(item))
                received.append(pa.table(pa.ipc.read_record_batch(data, _RECEIVED)))
            else:
                units.append(item)
        table = pa.concat_tables(received)
        to = table["unit"].to_numpy()
        for unit, shard in sorted(units, key=lambda item: item[0].index):
            here = table.filter(pa.array(to == unit.index)).drop_columns("unit")
            yield from super().process((unit, shard, here))

    def make(self, unit: Unit, shard: Shard, received: pa.Table) -> Receipt:
        table = read_shard(unit.shard)
        translated = pa.concat_tables([read_shard(shard), received])
        texts = table[self.direction.text].combine_chunks()
        codes, _ = distinct_texts(texts)
        made_of = translated["row"].to_numpy()
        repeated = np.ones(table.num_rows, bool)
        repeated[made_of[: shard.rows]] = False
        rows, results = spread(codes, made_of)
        tokens = moses_tokens(texts.filter(pa.array(repeated)), self.text_language)
        saved = Saved(rows=int(repeated.sum()), tokens=len(tokens.values))
        pairs, found = table.take(pa.array(rows)), translated.take(pa.array(results))
        if unit.candidates > 1:
            pairs = pairs.append_column(schema.CANDIDATE, found["candidate"])
        piece = (unit.name, *join_translations(pairs, found, self.direction))
        measurements = Measurements(saved={"input.unique": saved})
        return self.commit(unit, unit.rows, [piece], measurements)


_RECEIVED = schema.DISTINCT.append(pa.field("unit", pa.int32()))
