"""Measures the stages of a run on a sample of its pairs, in this process."""

import gzip
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import computed_field
from pydantic.dataclasses import dataclass as model

from paraloom.beam_jobs import bucket, generate, select
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import write_shard
from paraloom.beam_jobs.score import Scoring, score_table
from paraloom.beam_jobs.transforms.translations import Direction, with_translations
from paraloom.models.chat.answers import Answer
from paraloom.models.chat.client import Clients
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.usage import Usage
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.nmt.translate import Translator
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import stages
from paraloom.pipeline.stages import RESOURCES
from paraloom.pipeline.stages.resources.pair_models import model_names
from paraloom.pipeline.stages.resources.translation_model import scoring_model
from paraloom.pipeline.stages.score import resource_paths
from paraloom.pipeline.translation import Model

_SECONDS = 2.0
"""Least time in which a step is measured, if there are rows enough."""


@model(frozen=True, slots=True, kw_only=True)
class Job:
    """A stage as it was measured, or as it is estimated."""

    rows: int  # number that it reads; of a translation, that it translates
    rate: float  # rows per second on `cores` cores
    size: float  # bytes that it writes
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


@model(frozen=True, slots=True, kw_only=True)
class Requests:
    """What a generator's answers to all pairs take, if its server stays as fast as it was."""

    answers: int  # of the sample that the others follow from
    seconds: float
    tokens_in: float
    tokens_out: float
    cost: float | None  # None without prices or counts of tokens


def translate(
    direction: Direction, model: Model, sample: pa.Table, folder: str
) -> tuple[pa.Table, Job]:
    """Translate the sample as the run would, with all cores or the GPU."""
    texts = sample[direction.text].combine_chunks()
    translator = Translator(model.folder, model.options, languages=model.languages)
    translator.translate(texts[:16])  # the first batch on a GPU is slower
    columns, counters = translator.translate(texts)
    pairs, _ = with_translations(sample, columns, model.options.candidates, direction)
    if not len(pairs):
        raise UserError(f"{model.name}: translates none of {len(texts):,} sentences of the input")
    job = Job(
        rows=len(texts),
        rate=len(texts) / counters.seconds,
        size=_written(pairs, folder),
        cores=cores(),
        device=_name(translator.device),
    )
    return pairs, job


def with_stand_ins(pairs: pa.Table) -> pa.Table:
    """Pairs with another one's reference as the translation."""
    zeros = pa.array([0] * len(pairs))
    texts = pa.concat_tables([pairs[1:], pairs[:1]])["reference"]
    columns = [*(pairs[name] for name in schema.INGEST.names), texts, zeros, zeros]
    return pa.table(columns, schema.BACK_TRANSLATE.names).cast(schema.BACK_TRANSLATE)


def ask(
    of: ChatGenerator, sample: pa.Table, languages: tuple[str, str], requests: int
) -> Requests | None:
    """What so many requests take, by a generator's answers to the sample, a request each; None if
    it gave no answer that counts. Nothing is kept."""
    answers = list[Answer]()
    asked = generate.requests(of, of.template(), languages, sample)
    Clients([of]).ask(asked, answers.append)
    took = sum((answer.usage for answer in answers), Usage())
    if not took.requests:
        return None
    cost = took.at_prices(of.prices.model_dump() if of.prices else None)
    scale = requests / took.requests
    least = 60 / of.requests_per_minute if of.requests_per_minute else 0
    return Requests(
        answers=took.requests,
        seconds=requests * max(took.seconds / took.requests / of.concurrency, least),
        tokens_in=scale * took.tokens_in,
        tokens_out=scale * took.tokens_out,
        cost=None if cost is None else scale * cost,
    )


def time_step(
    step: Callable[[pa.Table], pa.Table], rows: pa.Table, folder: str
) -> tuple[pa.Table, Job]:
    """Measure a step on one core, with the writing of what it makes of the rows, and without what
    it loads first. Four times as many rows are taken until they take two seconds, or are all."""
    some, seconds = rows.slice(0, 16), 0.0
    step(some)  # loads
    while not seconds or (seconds < _SECONDS and len(some) < len(rows)):
        some = rows.slice(0, 4 * len(some))
        started = time.monotonic()
        made = step(some)
        size = _written(made, folder)
        seconds = time.monotonic() - started
    rows_read = max(len(some), 1)
    return made, Job(rows=rows_read, rate=rows_read / seconds, size=size)


def time_scores(
    run: Run, sample: pa.Table, folder: str
) -> tuple[dict[str, Job], dict[str, Job], list[str]]:
    """Measure `score`, `bucket` and `select` on pairs with translations, each on what the one
    before made.

    Returns the stages; the scorers with a model or of others, each by itself; and those that cannot
    be timed, since their resources do not exist.
    """
    fast, slow, resources = _timed_scorers(run)
    scorers, sources = fast or ["translation_score"], run.config.score.sources

    def scoring(names: list[str]) -> Scoring:
        return Scoring(names, resources, sources, run.language)

    scored, job = time_scorers(scoring(scorers), sample, folder)
    own = {name: time_scorers(scoring([name]), sample, folder)[1] for name in slow}
    job = replace(job, rate=1 / (1 / job.rate + sum(1 / each.rate for each in own.values())))
    if models := [each for each in own.values() if each.device != job.device]:
        job = replace(job, cores=models[0].cores, device=models[0].device)
    bucketed, bucketing = time_step(lambda rows: _with_deciles(rows, scorers), scored, folder)
    by, names = run.config.select.by, schema.bucketed(tuple(scorers)).names
    criteria = run.criteria(by if by in scorers else scorers[0], run.config.select.deciles)
    where = tuple(predicate for predicate in criteria.where if predicate.column in names)
    every = replace(criteria, where=where)
    chosen, selecting = time_step(lambda rows: _selected(rows, every), bucketed, folder)
    texts = pc.binary_join_element_wise(chosen["reference"], chosen["translation"], "\t")
    tsv = len(gzip.compress("\n".join(texts.to_pylist()).encode()))
    selecting = replace(selecting, size=selecting.size + tsv)
    left_out = [n for n in run.config.score.names if n not in (*fast, *slow)]
    return {"score": job, "bucket": bucketing, "select": selecting}, own, left_out


def time_scorers(scoring: Scoring, rows: pa.Table, folder: str) -> tuple[pa.Table, Job]:
    """Measure some scorers together; with a model, they have all cores, or the GPU."""
    names = scoring.scorers
    scorer = scoring.open([name for name in names if name not in rows.column_names])
    scored, job = time_step(lambda some: score_table(some, scorer, names)[0], rows, folder)
    if scoring.models:
        import torch

        device = _name("cuda" if torch.cuda.is_available() else "cpu")
        job = replace(job, cores=cores(), device=device)
    return scored, job


def _with_deciles(rows: pa.Table, scorers: Sequence[str]) -> pa.Table:
    """What the job `bucket` makes: it reads the scores for the bounds, and again for the rows."""
    columns = bucket.score_columns(rows, scorers)
    ranks = bucket.decile_ranks(len(rows))
    bounds = {
        name: [(int(ordered[rank]), 0) for rank in ranks]
        for name, column in columns.items()
        for ordered in [np.sort(column.score)]
    }
    for name, values in bucket.deciles_of(rows, scorers, bounds).items():
        rows = rows.append_column(name, pa.array(values, pa.int8()))
    return rows


def _selected(rows: pa.Table, criteria: select.Criteria) -> pa.Table:
    """What the job `select` makes: it decides for the duplicates, and again for the rows."""
    select.decide(rows, criteria)
    reasons, _ = select.decide(rows, criteria)
    return rows.filter(pa.array(reasons == ""))


def _timed_scorers(run: Run) -> tuple[list[str], list[str], dict[str, Any]]:
    """The scorers whose resources exist already: those timed together, and those timed by
    themselves, which have a model or are not Paraloom's; and the resources."""
    options = run.config.score
    given = (name for name in RESOURCES if stages()[name].given)
    files = {name: path for name in given if (path := getattr(options, name))}
    made = {n: path for n, path in resource_paths(run).items() if n in run.records}
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


def _written(rows: pa.Table, folder: str) -> float:
    """The size of a part file of the rows, in bytes."""
    return Path(write_shard(f"{folder}/part.parquet", rows).path).stat().st_size


def _name(device: str) -> str:
    if device == "cpu":
        return f"{cores()} CPU cores"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "a GPU"
