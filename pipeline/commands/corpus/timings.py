"""Measures the jobs of a run on a sample of its pairs, on this machine."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import bucket, ingest, score, select
from paraloom.beam_jobs.directions import BACK, Direction
from paraloom.beam_jobs.io import schema, storage
from paraloom.beam_jobs.io.bitext import find_bitext
from paraloom.beam_jobs.io.shards import Shard, Unit, units, write_shard
from paraloom.beam_jobs.runners.launch import Result
from paraloom.beam_jobs.transforms.candidates import best_candidates
from paraloom.beam_jobs.transforms.translations import with_translations
from paraloom.models.errors import UserError
from paraloom.models.memory import forget_peak, peak_memory
from paraloom.models.nmt.translate import Translator
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages.resources.translation_model import needed as needs_model
from paraloom.pipeline.translation import Model

COPIES = 50
"""Copies of the sample for the second measurement of the fast jobs."""

_ONE_WORKER = (
    "--runner=FnApiRunner",
    "--direct_running_mode=multi_processing",
    "--direct_num_workers=1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A job that read `rows` rows; `size` is the bytes written per row, `memory` the peak."""

    rows: int
    seconds: float
    size: float
    memory: int


class Translation(NamedTuple):
    """The rows of the sample that were translated, and the measurement."""

    pairs: pa.Table
    timed: Timed
    device: str  # cpu or cuda
    loading: float  # seconds to load the model
    scoring: float  # seconds a row of a scorer with this model; 0 without such a scorer


def translate(run: Run, direction: Direction, model: Model, sample: pa.Table) -> Translation:
    """Translate the sample as the run would, with all cores or the GPU."""
    texts = sample[direction.text].combine_chunks()
    started = time.monotonic()
    translator = Translator(model.folder, model.options, languages=model.languages)
    translator.translate(texts[:16])  # the first batch on a GPU is slower
    loading = time.monotonic() - started
    forget_peak()
    columns, counters = translator.translate(texts)
    memory = peak_memory()
    pairs, _ = with_translations(sample, columns, model.options.candidates, direction)
    if not len(pairs):
        raise UserError(f"{model.name}: translates none of {len(texts):,} sentences of the input")
    with tempfile.TemporaryDirectory() as folder:
        parts = _write_parts(pairs, run.input.shard_rows, folder)
        size = sum(storage.size(shard.path) for shard in parts) / len(texts)
    timed = Timed(rows=len(texts), seconds=counters.seconds, size=size, memory=memory)
    scoring = 0.0
    if direction is BACK and needs_model(run.config):
        started = time.monotonic()
        translator.score(*(sample[side].to_pylist() for side in ("source", "reference")))
        scoring = (time.monotonic() - started) / len(texts)
    return Translation(pairs, timed, translator.device, loading, scoring)


def time_jobs(
    run: Run, sample: pa.Table, scorers: Sequence[str], paths: dict[str, str], folder: Path
) -> dict[str, Timed]:
    """Measure the other jobs on translated pairs, by stage.

    Each runs on the sample and on copies of it: the difference excludes the start-up of a job.
    """
    few = _run_jobs(run, sample, scorers, paths, folder / "few")
    many = _run_jobs(run, _copies(sample), scorers, paths, folder / "many")
    return {
        stage: Timed(
            rows=job.rows - few[stage].rows,
            # At least a tenth: other load on the machine may have slowed the first run.
            seconds=max(job.seconds - few[stage].seconds, job.seconds / 10),
            size=few[stage].size,  # copies compress too well
            memory=job.memory,
        )
        for stage, job in many.items()
    }


def _write_parts(table: pa.Table, rows: int, folder: Path | str) -> list[Shard]:
    return [
        write_shard(f"{folder}/part-{start:09}.parquet", table.slice(start, rows))
        for start in range(0, len(table), rows)
    ]


def _copies(sample: pa.Table) -> pa.Table:
    """Copies that differ: the number of the copy is appended to the id and to the texts."""
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
    """Run all jobs except translation, each with one worker, on the output of the one before."""
    options = run.input
    folder.mkdir()
    text = folder / "input.tsv"
    found: dict[str, Timed] = {}
    pairs = table.filter(pa.array(best_candidates(table)))
    lines = pc.binary_join_element_wise(pairs["id"], pairs["source"], pairs["reference"], "\t")
    text.write_text("\n".join([*lines.to_pylist(), ""]), encoding="utf-8")
    parts = _write_parts(table, options.shard_rows, folder)

    def timed(stage: str, job: Callable[..., Result], first: Any, **more: Any) -> list[Unit]:
        started = time.monotonic()
        done = job(first, output=str(folder / stage), arguments=_ONE_WORKER, **more).receipts
        rows = sum(receipt.rows_in for receipt in done)
        found[stage] = Timed(
            rows=rows,
            seconds=time.monotonic() - started,
            size=sum(file.stat().st_size for file in (folder / stage).glob("*.*")) / rows,
            memory=max(receipt.peak_memory for receipt in done),
        )
        return units([shard for receipt in done for shard in receipt.shards], "")

    timed(
        "ingest",
        ingest.run,
        find_bitext("tsv", [str(text)]),
        key="",
        shard_rows=options.shard_rows,
        max_characters=options.max_characters + 10,
        where=options.conditions,
        unique_pairs=options.unique == "pair",
        languages=options.languages,
    )
    scored = timed(
        "score",
        score.run,
        units(parts, ""),
        scorers=scorers,
        resources=paths,
        language=run.language,
    )
    bucketed = timed("bucket", bucket.run, scored, scorers=scorers)
    timed("corpus", select.run, bucketed, criteria=_criteria(run, scorers))
    return found


def _criteria(run: Run, scorers: Sequence[str]) -> select.Criteria:
    """The run's criteria, without those that need a score that was not computed."""
    by, columns = run.config.select.by, schema.bucketed(tuple(scorers)).names
    criteria = run.criteria(by if by in scorers else scorers[0], run.config.select.deciles)
    where = tuple(predicate for predicate in criteria.where if predicate.column in columns)
    return replace(criteria, where=where, size=None)
