"""Measures the jobs of a run on a sample of its pairs, on this machine."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import computed_field
from pydantic.dataclasses import dataclass as model

from paraloom.beam_jobs import bucket, generate, ingest, score, select
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.bitext import find_bitext
from paraloom.beam_jobs.io.shards import Shard, Unit, read_shard, units, write_shard
from paraloom.beam_jobs.runners.launch import Result
from paraloom.beam_jobs.transforms.candidates import best_candidates
from paraloom.beam_jobs.transforms.directions import Direction
from paraloom.beam_jobs.transforms.translations import with_translations
from paraloom.models.chat.answers import Answer
from paraloom.models.chat.client import Clients
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.memory import forget_peak, peak_memory
from paraloom.models.nmt.translate import Translator
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.config.input import MAX_CHARACTERS
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages.resources import RESOURCES
from paraloom.pipeline.stages.resources.pair_models import model_names
from paraloom.pipeline.stages.resources.translation_model import scoring_model
from paraloom.pipeline.stages.score import resource_paths
from paraloom.pipeline.translation import Model

COPIES = 50
"""Copies of the sample that the fast jobs are measured on."""

_SECONDS = 2.0
"""Least time in which a scorer is measured, if there are pairs enough."""

_ONE_WORKER = (
    "--runner=FnApiRunner",
    "--direct_running_mode=multi_processing",
    "--direct_num_workers=1",
)


@model(frozen=True, slots=True, kw_only=True)
class Job:
    """A stage as it was measured, or as it is estimated."""

    rows: int  # number that it reads; of a translation, that it translates
    rate: float  # rows per second on `cores` cores
    size: float  # bytes that it writes
    memory: int  # peak of a worker process, in bytes
    cores: int = 1
    device: str = "a core"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def seconds(self) -> float:
        """On this machine, if all its cores are as fast as those measured."""
        return self.rows / self.rate * self.cores / cores()

    def of(self, rows: float) -> "Job":
        """The same job with so many rows."""
        return replace(self, rows=round(rows), size=self.size / self.rows * rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The rows of the sample that were translated, and the measurement."""

    pairs: pa.Table
    job: Job
    loading: float  # seconds to load the model


def translate(
    run: Run, direction: Direction, model: Model, sample: pa.Table, folder: Path
) -> Translation:
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
    parts = _write_parts([pairs], run.input.shard_rows, folder / direction.job)
    job = Job(
        rows=len(texts),
        rate=len(texts) / counters.seconds,
        size=_size(parts),
        memory=memory,
        cores=cores(),
        device=_name(translator.device),
    )
    return Translation(pairs=pairs, job=job, loading=loading)


def with_stand_ins(pairs: pa.Table) -> pa.Table:
    """Pairs with another one's reference as the translation."""
    zeros = pa.array([0] * len(pairs))
    texts = pa.concat_tables([pairs[1:], pairs[:1]])["reference"]
    columns = [*(pairs[name] for name in schema.INGEST.names), texts, zeros, zeros]
    return pa.table(columns, schema.BACK_TRANSLATE.names).cast(schema.BACK_TRANSLATE)


def ask(generator: ChatGenerator, sample: pa.Table, languages: tuple[str, str]) -> list[Answer]:
    """A generator's answers to some pairs, a request each; nothing is kept."""
    answers = list[Answer]()
    requests = generate.requests(generator, generator.template(), languages, sample)
    Clients([generator]).ask(requests, answers.append)
    return answers


def _name(device: str) -> str:
    if device == "cpu":
        return f"{cores()} CPU cores"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "a GPU"


def time_jobs(
    run: Run, sample: pa.Table, scorers: Sequence[str], paths: dict[str, str], folder: Path
) -> dict[str, Job]:
    """Measure the other jobs on copies of translated pairs, by stage.

    Each has one worker and reads the output of the one before. Ingest only maps rows: the time in
    which its worker is at none is the start-up of a job, which the times exclude. Sizes are of one
    copy: several in a part file compress too well.
    """
    options, starting = run.input, 0.0
    found: dict[str, Job] = {}

    def timed(stage: str, job: Callable[..., Result], first: Any, **more: Any) -> list[Unit]:
        nonlocal starting
        started = time.monotonic()
        done = job(first, output=str(folder / stage), arguments=_ONE_WORKER, **more).receipts
        whole, busy = time.monotonic() - started, sum(receipt.seconds for receipt in done)
        starting = starting or max(whole - busy, 0.0)
        rows = sum(receipt.rows_in for receipt in done)
        shards = [shard for receipt in done for shard in receipt.shards]
        one = shards[: -(-len(sample) // options.shard_rows)]
        copy = [read_shard(shard).slice(0, len(sample)) for shard in one]
        size = _size(_write_parts(copy, len(sample), folder / "copy" / stage))
        size *= sum(shard.rows for shard in shards) / max(sum(map(len, copy)), 1)
        texts = sum(file.stat().st_size for file in (folder / stage).glob("*.gz"))
        found[stage] = Job(
            rows=rows,
            rate=rows / max(whole - starting, busy, 1e-6),
            size=size + texts,
            memory=max(receipt.peak_memory for receipt in done),
        )
        return units(shards, "")

    text = folder / "input.tsv"
    copies = [_copy(sample, number) for number in range(COPIES)]
    with text.open("w", encoding="utf-8") as stream:
        for copy in copies:
            pairs = copy.filter(pa.array(best_candidates(copy)))
            columns = (pairs[name] for name in ("id", "source", "reference"))
            lines = pc.binary_join_element_wise(*columns, "\t")
            stream.writelines(f"{line}\n" for line in lines.to_pylist())
    reading = ingest.Reading(
        shard_rows=options.shard_rows,
        max_characters=MAX_CHARACTERS + 10,
        where=tuple(of for of in options.conditions if of.column not in options.keep),
        unique_pairs=options.unique == "pair",
        languages=options.languages,
    )
    timed("ingest", ingest.run, find_bitext("tsv", [str(text)]), key="", reading=reading)
    parts = _write_parts([pa.concat_tables(copies)], options.shard_rows, folder / "translated")
    work = units(parts, "")
    scoring = score.Scoring(scorers, paths, (), run.language)
    scored = timed("score", score.run, work, scoring=scoring)
    bucketed = timed("bucket", bucket.run, scored, scorers=scorers)
    by, columns = run.config.select.by, schema.bucketed(tuple(scorers)).names
    criteria = run.criteria(by if by in scorers else scorers[0], run.config.select.deciles)
    where = tuple(predicate for predicate in criteria.where if predicate.column in columns)
    every = replace(criteria, where=where, size=None, per_generator=None)
    timed("select", select.run, bucketed, criteria=every)
    return found


def timed_scorers(run: Run) -> tuple[list[str], list[str], dict[str, Any]]:
    """The scorers whose resources exist already: those timed in a job, and those timed by
    themselves, which have a model or are not Paraloom's; and the resources."""
    options = run.config.score
    files = {s.name: path for s in RESOURCES if s.given and (path := getattr(options, s.name))}
    made = {n: path for n, path in resource_paths(run).items() if n in run.manifest.stages}
    resources: dict[str, Any] = files | made | options.resources | model_names(run.config)
    if model := scoring_model(run):
        resources["translation_model"] = model
    own = {source.name: source.load() for source in options.sources}
    fast: list[str] = []
    slow: list[str] = []
    for name in options.names:
        scorer = own.get(name) or SCORERS.get(name)
        kind = scorer.resource if scorer else None
        if name not in options.columns and (kind is None or kind.name in resources):
            (slow if name in own or (kind and kind.is_model) else fast).append(name)
    return fast, slow, resources


def time_scorers(scoring: score.Scoring, sample: pa.Table) -> dict[str, float]:
    """Seconds that each scorer takes for a row by itself, with all cores or the GPU.

    Loading is left out. Four times as many rows are scored until they take two seconds, or are all.
    """
    found = {}
    for name in scoring.scorers:
        scorer, rows, seconds = scoring.open([name]), 16, 0.0
        score.score_table(sample.slice(0, rows), scorer, [name])  # loads
        while seconds < _SECONDS and rows < len(sample):
            rows = min(4 * rows, len(sample))
            started = time.monotonic()
            score.score_table(sample.slice(0, rows), scorer, [name])
            seconds = time.monotonic() - started
        found[name] = seconds / rows
    return found


def with_scorers(job: Job, seconds: dict[str, float], *, model: bool) -> Job:
    """The job `score` with scorers that take so long for a row; with a model among them, one
    process has all cores."""
    rate = 1 / (1 / job.rate + sum(seconds.values()))
    if not model:
        return replace(job, rate=rate)
    import torch

    device = _name("cuda" if torch.cuda.is_available() else "cpu")
    memory = max(job.memory, peak_memory())
    return replace(job, rate=rate, cores=cores(), device=device, memory=memory)


def _write_parts(tables: Sequence[pa.Table], rows: int, folder: Path) -> list[Shard]:
    """Write part files of at most `rows` rows."""
    return [
        write_shard(f"{folder}/part-{number:03}-{start:09}.parquet", table.slice(start, rows))
        for number, table in enumerate(tables)
        for start in range(0, len(table), rows)
    ]


def _size(parts: Sequence[Shard]) -> float:
    return sum(Path(part.path).stat().st_size for part in parts)


def _copy(sample: pa.Table, number: int) -> pa.Table:
    """A copy with the number appended to the id and to the texts."""
    for name in ("id", "reference", "translation"):
        column = pc.binary_join_element_wise(sample[name], str(number), " ")
        where = sample.schema.get_field_index(name)
        sample = sample.set_column(where, sample.schema.field(where), column)
    return sample
