"""`paraloom estimate`: time, cost and disk of a run, measured on a sample of its input.

The code of each stage runs on the sample in this process, as it would in a worker.
"""

import tempfile
from dataclasses import replace
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from pydantic import BaseModel
from rich.filesize import decimal
from rich.table import Table

from paraloom.beam_jobs.bitext import READERS, find_bitext, read_bitext
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import connect
from paraloom.beam_jobs.score import Scoring
from paraloom.beam_jobs.transforms.translations import BACK, PIVOT, Direction
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.printing import say
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.corpus.timings import (
    Job,
    Requests,
    ask,
    time_scorers,
    time_scores,
    time_step,
    translate,
    with_stand_ins,
)
from paraloom.pipeline.commands.options import (
    Changes,
    ConfigFile,
    GpuHour,
    JsonFile,
    beam_options,
    write_json,
)
from paraloom.pipeline.commands.run.status import duration
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.input import MAX_CHARACTERS, InputOptions
from paraloom.pipeline.config.languages import check_texts
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.pages.describe import hours_in_words
from paraloom.pipeline.plan import closure, plan
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages.translation import Model, backward, forward

_SENTENCES, _FEW = 2_000, 200  # sentences to translate; where another machine is to do it
_READ = 20_000  # rows that they are sampled from


class Estimated(BaseModel):
    """An estimate, and its JSON form."""

    rows: int
    counted: bool  # rows, not estimated from the files' sizes and beginnings
    rejected: float  # share of the rows that cannot be used
    kept: float  # share of the others that `input.where` and `input.unique` leave
    translated: float  # share of these whose texts are translated
    sampled: int  # sentences that were translated
    jobs: dict[str, Job]  # by stage
    scorers: dict[str, float]  # seconds for a row, of scorers timed by themselves
    left_out: list[str]  # scorers that were not timed
    not_timed: list[str] = []  # stages that are not among the jobs
    requests: int  # of each generator of kind chat
    generators: dict[str, Requests]  # those that have answered some
    translation_hours: float = 0.0  # of one machine
    translation_cost: float | None = None  # with --gpu-hour
    basis: list[str]  # what the estimates are based on, in words


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    gpu_hour: GpuHour = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Rows of the whole input.")
    ] = None,
    rows_per_second: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            min=1e-9,
            help="Sentences that --device translates in a second; then 200 are translated here.",
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="The machine that --rows-per-second is of.")
    ] = "another machine",
    requests: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Pairs that each language model of `generators` is asked about: they cost money.",
        ),
    ] = 0,
    json: JsonFile = None,
) -> None:
    """Translate about 2,000 sentences of the input, time the other stages on them, extrapolate.

    Estimates have two digits, and exclude what trains (PARAGRAM, encoder); a line names it.
    """
    run = read_config(config, changes or ())
    connect(beam_options(context), [run.run])
    elsewhere = (rows_per_second, device) if rows_per_second else None
    found = estimate(run, rows, elsewhere, requests)
    if gpu_hour is not None and (hours := found.translation_hours):
        found.translation_cost = hours * gpu_hour
        cost = f"{hours_in_words(hours)} hours in all, {hours_in_words(hours * gpu_hour)}"
        found.basis.insert(0, f"Back-translation, one machine: {cost} at {gpu_hour:g} an hour.")
    out = console()
    out.print(job_table(found.jobs))
    out.print(*found.basis, sep="\n", highlight=False)
    write_json(json, found)


def estimate(
    config: Config,
    rows: int | None = None,
    elsewhere: tuple[float, str] | None = None,
    requests: int = 0,
) -> Estimated:
    """Measure the stages of pairs on a sample.

    Args:
        rows: how many the input has, if not as many as its files.
        elsewhere: sentences a second that another machine translates, and its name.
        requests: pairs that each generator of kind chat is asked about.
    """
    run = Run(config=config, manifest=Manifest(config.run))
    if config.translates and config.nmt.model is None and "nmt" not in run.manifest.stages:
        raise UserError(
            "nmt.model: null: this run trains its own model; run `paraloom train-nmt` with this "
            "configuration first"
        )
    for stage in closure("score", config):
        stage.check(config)
    bitexts = find_bitext(run.input.format, run.input.paths, run.input.layout)
    check_texts(run.input, bitexts)
    seen = preview(bitexts, rows=_READ, max_characters=MAX_CHARACTERS)
    kept, chosen = choose(seen.pairs, run.input)
    if not len(chosen):
        raise UserError("input.where: no row at the beginning of the files meets the conditions")
    count = min(_FEW if elsewhere else _SENTENCES, len(chosen))
    drawn = np.random.default_rng(config.seed).choice(len(chosen), count, replace=False)
    sample = chosen.take(np.sort(drawn)).combine_chunks()
    languages = config.languages.source or "", config.languages.target or ""
    scale = (rows or seen.rows) * (1 - seen.rejected) / len(seen.pairs)
    left, translated = scale * kept, scale * len(chosen)
    found = Estimated(
        rows=rows or seen.rows,
        counted=seen.counted,
        rejected=seen.rejected,
        kept=kept / len(seen.pairs),
        translated=len(chosen) / kept,
        sampled=0,
        jobs={},
        scorers={},
        left_out=[],
        requests=round(left) if config.chats else 0,
        generators={},
        basis=[],
    )
    for of in config.chats if requests else ():
        if took := ask(of, sample.slice(0, requests), languages, found.requests):
            found.generators[of.name] = took
    with tempfile.TemporaryDirectory() as folder:

        def read(some: pa.Table) -> pa.Table:
            first = read_bitext(bitexts[0], rows=len(some), max_characters=MAX_CHARACTERS)
            pairs = pa.Table.from_batches([next(first).pairs])
            choose(pairs, run.input)
            return pairs

        _, job = time_step(read, read(seen.pairs), folder)
        found.jobs["ingest"] = replace(job, size=job.size * found.kept).of(found.rows)
        made: list[tuple[Direction, Model]] = []
        if config.is_plain_text:
            sample = sample.select(schema.TEXT.names)
            made.append((PIVOT, forward(config)))
        if config.translates:
            made.append((BACK, backward(run)))
        for direction, model in made:
            count = len(sample)
            say(f"estimate: translating {count:,} sentences ({model.name}); this takes minutes")
            sample, job = translate(direction, model, sample, folder)
            found.sampled = job.rows
            found.basis = [
                f"Translated: {count:,} sentences sampled from the beginnings of {seen.files} "
                f"file(s), on {job.device}, {config.nmt.compute_type}, beam {config.nmt.beam}."
            ]
            job = job.of(translated)
            if elsewhere:
                job = replace(job, rate=elsewhere[0], cores=cores(), device=elsewhere[1])
            # All rows get translations, also those whose sources are translated for others.
            found.jobs[direction.job] = replace(job, size=job.size * left / translated)
            found.translation_hours += job.seconds / 3600
            left, translated = (n * len(sample) / count for n in (left, translated))
            # As many rows as without `nmt.candidates` are enough to time the other stages.
            sample = sample[:count]
        if not config.translates:
            sample = with_stand_ins(sample)
            found.basis = ["Back-translation: none; other references stand in for candidates."]
        say(f"estimate: scoring {len(sample):,} pairs")
        timed, slow, found.left_out = time_scores(run, sample, folder)
        generated = scale * kept * sum(of.n for of in config.chats)
        rest = {n: job.of(left * config.translates + generated) for n, job in timed.items()}
        if answered := [*found.generators.values()]:
            seconds = max(of.seconds for of in answered)  # all servers are asked at once
            if config.has_model:  # then it scores their candidates
                scoring = Scoring(["reference_score"], {"translation_model": backward(run).factory})
                seconds += generated / time_scorers(scoring, sample, folder)[1].rate
            job = replace(rest["score"], device=f"{len(answered)} language model(s)", cores=cores())
            found.jobs["generate"] = replace(job, rate=job.rows / seconds)
    found.jobs |= rest
    stages = (stage.name for stage in plan(config) if stage.enabled(config))
    found.not_timed = [name for name in stages if name not in found.jobs]
    found.scorers = {name: 1 / job.rate for name, job in slow.items()}
    found.basis = [*_basis(config, found, len(seen.pairs), requests), *found.basis]
    return found


def choose(pairs: pa.Table, options: InputOptions) -> tuple[int, pa.Table]:
    """The number of pairs that `input.where` and `input.unique` leave, and those of them whose
    texts are translated."""
    pairs = options.accepted(pairs)
    left = len(pairs)
    if options.unique:
        side = "source" if READERS[options.format].has_source else "reference"
        names = ["source", "reference"] if options.unique == "pair" else [side]
        first = pairs.append_column("row", pa.array(np.arange(left))).group_by(names)
        rows = first.aggregate([("row", "min")])["row_min"].combine_chunks()
        pairs = pairs.take(rows.sort())
    return (len(pairs) if options.unique == "pair" else left), pairs


def job_table(jobs: dict[str, Job]) -> Table:
    """The stages as they are estimated, and their sum."""
    title = "Estimates for the whole input on this machine"
    table = number_table(title, "stage", numbers=("rows", "measured", "time", "disk"))
    for stage, job in jobs.items():
        measured = f"{rate(job.rate)} rows/s, {job.device}"
        table.add_row(stage, f"{job.rows:,}", measured, *_taken([job]))
    table.add_section()
    table.add_row("all", "", "", *_taken([*jobs.values()]))
    return table


def _taken(jobs: list[Job]) -> tuple[str, str]:
    seconds, size = sum(job.seconds for job in jobs), sum(job.size for job in jobs)
    return duration(two_digits(seconds)), decimal(int(two_digits(size))).replace(".0 ", " ")


def _basis(config: Config, found: Estimated, read: int, requests: int) -> list[str]:
    """What the estimates are based on, in lines."""
    how = "counted" if found.counted else "estimated from the files' sizes and beginnings"
    lines = [
        f"Rows: {how}; {found.rejected:.1%} of those read cannot be used.",
        f"Other stages: timed on one core, extrapolated to {cores()} cores.",
        f"Not in the table: {', '.join(found.not_timed)}; process start-up, further rounds.",
    ]
    if found.kept < 1 or found.translated < 1:
        text = f"Of {read:,} rows read, `input` keeps {found.kept:.1%}; of these, "
        text += f"{found.translated:.1%} are translated; the whole input may repeat more."
        lines.insert(1, text)
    if found.scorers:
        rates = (f"{name} {rate(1 / each)}" for name, each in found.scorers.items())
        lines.append(f"Scorers timed by themselves, rows/s: {', '.join(rates)}.")
    for of in config.chats:
        said = f"{found.requests:,} requests, not in the table; `--requests 20` measures them."
        if took := found.generators.get(of.name):
            tokens = (f"{two_digits(n):,.0f}" for n in (took.tokens_in, took.tokens_out))
            cost = "" if took.cost is None else f", cost {rate(took.cost)}"
            said = f"{found.requests:,} requests, {duration(two_digits(took.seconds))}, "
            said += f"{' + '.join(tokens)} tokens{cost}, from {took.answers} answers."
        elif requests:
            said = "gave no answer that counts."
        lines.append(f"{of.name}: {said}")
    if found.left_out:
        lines.append(f"Not timed, for their resources do not exist: {', '.join(found.left_out)}.")
    return lines


def rate(value: float) -> str:
    """Two digits of a small number, thousands of a large one."""
    return f"{two_digits(value):,.0f}" if value >= 10 else f"{value:.2g}"


def two_digits(value: float) -> float:
    """The value, rounded to two digits."""
    return float(f"{value:.2g}")
