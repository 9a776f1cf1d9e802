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
from dataclasses import asdict, dataclass, replace
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
from paraloom.beam_jobs.runners.launch import Result, UnitJob, launch, local_workers
from paraloom.beam_jobs.runners.rejections import Limit
from paraloom.beam_jobs.transforms.directions import BACK, Direction
from paraloom.beam_jobs.transforms.first_occurrences import (
    Occurrences,
    WithFirstOccurrences,
    distinct_texts,
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
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.text.tokens import moses_tokens

VERSION = 1
"""Bump when the job's rows change for the same input."""

_TOGETHER = 16
"""Shards that are joined together: what they need of another shard is one message."""


class TranslateUnits(beam.PTransform):
    """Units in, receipts out; every shard is translated and committed independently.

    Args:
        threads: cores that a worker process may use; None uses all available ones.
        accelerator: Beam resource hint for this stage only, such as
            `type:nvidia-tesla-t4;count:1;install-nvidia-driver`.
        seed: of translations drawn at random.
        distinct: translate equal sources of all units once; the key of model and options.
        rows: approximate number of rows of all units, for `distinct`.
        direction: `directions.BACK` or `directions.PIVOT`.
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
        distinct: str | None = None,
        rows: int = 0,
        direction: Direction = BACK,
    ):
        super().__init__()
        self.output, self.rows, self.accelerator = output, rows, accelerator
        self.direction = direction
        self.text_language = (languages.source if languages else None) or ENGLISH
        self.distinct = distinct is not None
        self.dofn: beam.DoFn
        given = model, options, languages, threads, accelerator, seed, direction
        if distinct is None:
            self.dofn = _Translate(output, *given)
        else:
            self.dofn = _TranslateOwned(distinct_folder(output), *given, distinct)

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Translate unit by unit, on a GPU if the runner can assign one to a stage."""
        translate = beam.ParDo(self.dofn)
        if self.accelerator:
            translate = translate.with_resource_hints(accelerator=self.accelerator)
        if not self.distinct:
            return units | "Translate" >> translate
        return (
            units
            | "Repeated sources"
            >> WithFirstOccurrences(partial(_texts, column=self.direction.text), self.rows)
            | "Balance" >> beam.Reshuffle()
            | "Translate" >> translate.with_output_types(tuple[int, Any])
            | "Join" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(_Join(self.output, self.direction, self.text_language))
        )


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
    distinct: str | None = None,
    direction: Direction = BACK,
    max_rejected: float = 1.0,
) -> Result:
    """Translate `units` into `output`.

    On this machine one process translates with all cores, so that the model is loaded once.

    Args:
        distinct: translate equal sources of all units once; the key of model and options.
        direction: `directions.BACK` or `directions.PIVOT`.
        max_rejected: largest share of rows that may be rejected.
    """
    threads = None if any(a.startswith("--runner") for a in arguments) else local_workers(arguments)
    if accelerator:
        arguments = dataflow.one_process(arguments, accelerator)
    rows = sum(unit.rows for unit in units)
    transform = TranslateUnits(
        output,
        model,
        options,
        languages=languages,
        threads=threads,
        accelerator=accelerator,
        seed=seed,
        distinct=distinct,
        rows=rows,
        direction=direction,
    )
    job = UnitJob(
        name=direction.job,
        units=units,
        transform=transform,
        output=output,
        processes=1,
        limit=Limit(share=max_rejected),
        attempts=output,
    )
    if distinct is None:
        return launch(job, arguments)
    units, folder = _chained(units), distinct_folder(output)
    for receipt in receipts(folder):
        if not receipt.key.startswith(distinct):
            storage.remove(storage.join(folder, "receipts", f"{receipt.name}.json"))
    by_name = {unit.name: unit.rows for unit in units}

    def done() -> int:
        names = storage.names(storage.join(folder, "receipts"))
        return sum(by_name.get(name.removesuffix(".json"), 0) for name in names)

    limit = Limit(share=max_rejected, folder=folder)
    job = replace(job, units=units, done=done, attempts=folder, limit=limit)
    result = launch(job, arguments)
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

    model: str
    options: NmtOptions
    languages: Languages | None
    threads: int | None
    accelerator: str | None
    seed: int
    direction: Direction

    def __post_init__(self) -> None:
        self.shared = Shared()

    def setup(self) -> None:
        factory = TranslatorFactory(self.model, self.options, self.languages)
        loading = partial(factory.open, self.threads or cores(), self.accelerator)
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
        seed = drawing_seed(self.seed, content)
        attempt = begin(self.output, unit.name, unit.key)
        hints = attempt if attempt.number > 1 else None
        try:
            translations, counts = self.translator.translate(sources, hints, seed=seed)
            count(counts)
            numbers = asdict(counts)
            used = self.translator
            numbers |= {"attempts": attempt.number, "converted": used.converted}
            numbers |= {"compute_type": used.compute_type}
            receipt = commit(translations, Measurements.model_validate(numbers))
        except BaseException:  # the process did not die
            attempt.failed()
            raise
        attempt.over()
        return receipt

    def make(self, unit: Unit) -> Receipt:
        table = read_shard(unit.shard)

        def commit(translations: pa.RecordBatch, measurements: Measurements) -> Receipt:
            found = with_translations(table, translations, unit.candidates, self.direction)
            return self.commit(unit, unit.rows, [(unit.name, *found)], measurements)

        sources = table[self.direction.text].combine_chunks()
        return self.translate(unit, sources, unit.shard.digest, commit)


@dataclass(eq=False)
class _TranslateOwned(_Translate):
    """Translates the sources that a unit owns, and sends them to the units that repeat them.

    Attributes:
        distinct: the key of model and options.
    """

    distinct: str

    def process(self, element: Any, side_input: Any = None) -> Iterator[Any]:
        unit, occurrences = element
        sources = _texts(unit, self.direction.text)
        _, first = distinct_texts(sources)
        rows = np.setdiff1d(first, occurrences.repeats, assume_unique=True)
        owned = sources.take(pa.array(rows))
        key = f"{self.distinct}-{content_key(rows.tolist(), owned.to_pylist())}"
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
            numbers = measurements.model_copy(
                update={"shard_rows": unit.rows, "rejected": dict(rejected.most_common())}
            )
            return self.commit(unit, len(source), [piece], numbers)

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
        starts, ends = (np.searchsorted(rows, wanted[:, 0], side) for side in ("left", "right"))
        counts = ends - starts
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        part = translated.take(pa.array(np.repeat(starts, counts) + within))
        part = part.set_column(0, "row", pa.array(np.repeat(wanted[:, 2], counts), pa.int32()))
        units = pa.array(np.repeat(wanted[:, 1], counts), pa.int32())
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
        codes, _ = distinct_texts(table[self.direction.text].combine_chunks())
        owned = np.zeros(table.num_rows, bool)
        owned[translated["row"].to_numpy()[: shard.rows]] = True
        rows, results = spread(codes, translated["row"].to_numpy())
        repeated = table[self.direction.text].filter(pa.array(~owned))
        tokens = moses_tokens(repeated, self.text_language)
        saved = Saved(rows=int((~owned).sum()), tokens=len(tokens.values))
        pairs, results = table.take(pa.array(rows)), translated.take(pa.array(results))
        if unit.candidates > 1:
            pairs = pairs.append_column(schema.CANDIDATE, results["candidate"])
        piece = (unit.name, *join_translations(pairs, results, self.direction))
        measurements = Measurements(saved={"input.unique": saved})
        return self.commit(unit, unit.rows, [piece], measurements)


_RECEIVED = schema.DISTINCT.append(pa.field("unit", pa.int32()))
