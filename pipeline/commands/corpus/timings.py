"""How long the jobs of a run take on a sample of its pairs, on this machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from beam_jobs import bucket, ingest, score, select
from beam_jobs.io import schema, storage
from beam_jobs.io.bitext import find_bitext
from beam_jobs.io.shards import Unit, units, write_shard
from beam_jobs.runners.launch import Result
from beam_jobs.transforms.predicates import Predicate
from models.errors import UserError
from models.memory import forget_peak, peak_memory
from models.nmt.translate import Translator
from pipeline.stage import Run

COPIES = 50
"""Of the sample, for the jobs that are fast."""

_ONE_WORKER = (
    "--runner=FnApiRunner",
    "--direct_running_mode=multi_processing",
    "--direct_num_workers=1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A job on `rows` rows; `size` (of what one row leaves) and `memory` in bytes."""

    rows: int
    seconds: float
    size: float
    memory: int


class Translation(NamedTuple):
    """The sample's pairs that have a translation, and what that took."""

    pairs: pa.Table
    timed: Timed
    device: str  # cpu or cuda
    loading: float  # seconds until the model was there


def translate(run: Run, model: str, sample: pa.Table) -> Translation:
    """Translate the sample as the run would, with all cores or the GPU.

    Raises:
        UserError: the model cannot be loaded, or translates nothing.
    """
    sources = sample["source"].combine_chunks()
    started = time.monotonic()
    translator = Translator(model, run.config.nmt)
    translator.translate(sources[:16])  # the first batch on a GPU takes longer
    loading = time.monotonic() - started
    forget_peak()
    columns, counters = translator.translate(sources)
    memory = peak_memory()
    for name in schema.BACK_TRANSLATE.names[len(schema.INGEST) :]:
        sample = sample.append_column(name, columns[name])
    pairs = sample.filter(columns["reason"].is_null()).cast(schema.BACK_TRANSLATE)
    if not len(pairs):
        raise UserError(f"{model}: translates none of {len(sources):,} sentences of the input")
    timed = Timed(
        rows=len(sources),
        seconds=counters.seconds,
        size=_size(pairs, run.input.shard_rows) / len(sources),
        memory=memory,
    )
    return Translation(pairs, timed, translator.device, loading)


def time_jobs(
    run: Run, sample: pa.Table, scorers: Sequence[str], paths: dict[str, str], folder: Path
) -> dict[str, Timed]:
    """Run the other jobs on translated pairs and on copies of them, by stage.

    The difference is what rows take: a job starts for a second or two before its first one.
    """
    few = _run_jobs(run, sample, scorers, paths, folder / "few")
    many = _run_jobs(run, _copied(sample), scorers, paths, folder / "many")
    return {
        stage: Timed(
            rows=job.rows - few[stage].rows,
            # No less than a part of it, however the machine's other work delayed the first.
            seconds=max(job.seconds - few[stage].seconds, job.seconds / 10),
            size=few[stage].size,  # copies take less: they compress too well
            memory=job.memory,
        )
        for stage, job in many.items()
    }


def _size(table: pa.Table, rows: int) -> int:
    """Bytes of the rows as part files."""
    with tempfile.TemporaryDirectory() as folder:
        starts = range(0, len(table), rows)
        shards = [write_shard(f"{folder}/{n}", table.slice(n, rows)) for n in starts]
        return sum(storage.size(shard.path) for shard in shards)


def _copied(sample: pa.Table) -> pa.Table:
    """Copies that are not the same: number n stands at the ends of the texts, and in the id."""
    copies = []
    for copy in range(COPIES):
        table = sample
        for name in ("id", "reference", "translation"):
            column = pc.binary_join_element_wise(table[name], str(copy), " ")
            table = table.set_column(table.schema.get_field_index(name), name, column)
        copies.append(table.cast(sample.schema))
    return pa.concat_tables(copies)


def _run_jobs(
    run: Run, table: pa.Table, scorers: Sequence[str], paths: dict[str, str], folder: Path
) -> dict[str, Timed]:
    """Run all jobs but translation, each with one worker, on what the one before left."""
    options = run.input
    folder.mkdir()
    text, found = folder / "input.tsv", {}
    lines = pc.binary_join_element_wise(table["id"], table["source"], table["reference"], "\t")
    text.write_text("\n".join([*lines.to_pylist(), ""]), encoding="utf-8")
    parts = [
        write_shard(
            str(folder / f"part-{start:09}.parquet"), table.slice(start, options.shard_rows)
        )
        for start in range(0, len(table), options.shard_rows)
    ]

    def timed(stage: str, job: Callable[..., Result], first: Any, **more: Any) -> list[Unit]:
        started = time.monotonic()
        left = job(first, output=str(folder / stage), arguments=_ONE_WORKER, **more).receipts
        found[stage] = Timed(
            rows=sum(receipt.rows_in for receipt in left),
            seconds=time.monotonic() - started,
            size=sum(file.stat().st_size for file in (folder / stage).glob("*.*")) / len(table),
            memory=max(receipt.peak_memory for receipt in left),
        )
        return units([shard for receipt in left for shard in receipt.shards], "")

    timed(
        "ingest",
        ingest.run,
        find_bitext("tsv", [str(text)]),
        key="",
        shard_rows=options.shard_rows,
        max_characters=options.max_characters + 10,
        rows=len(table),
    )
    scored = timed("score", score.run, units(parts, ""), scorers=scorers, tables=paths)
    bucketed = timed("bucket", bucket.run, scored, scorers=scorers)
    timed("corpus", select.run, bucketed, criteria=_criteria(run, scorers))
    return found


def _criteria(run: Run, scorers: Sequence[str]) -> select.Criteria:
    """The run's own, as far as its scores are there."""
    options, columns = run.config.select, schema.bucketed(tuple(scorers)).names
    conditions = map(Predicate.parse, options.where)
    return select.Criteria(
        by=options.by if options.by in scorers else scorers[0],
        deciles=None if options.deciles is None else tuple(options.deciles),
        max_tokens=options.max_tokens,
        size=None,
        seed=run.config.seed,
        where=tuple(condition for condition in conditions if condition.column in columns),
    )
