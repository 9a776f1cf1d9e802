"""`paraloom estimate`: estimates the time, cost and disk space of a run."""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from pydantic import BaseModel
from pydantic.dataclasses import dataclass as model
from rich.filesize import decimal
from rich.table import Table

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import READERS
from paraloom.beam_jobs.engine.options import connect, local_workers
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.printing import say
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.corpus import small_run
from paraloom.pipeline.commands.corpus.small_run import Job
from paraloom.pipeline.commands.options import (
    Changes,
    ConfigFile,
    JsonFile,
    beam_options,
    check_unused,
    option,
    write_json,
)
from paraloom.pipeline.commands.run.status import duration
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.input import InputOptions
from paraloom.pipeline.pages.describe import decoding
from paraloom.pipeline.run.plan import closure, plan
from paraloom.pipeline.run.records import BackTranslateRecord, PairsRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RANKED, TARGETS
from paraloom.pipeline.stages.generate import GeneratedBy, GenerateRecord

_SENTENCES = 2_000  # rows in the sample
_FEW = 200  # rows in the sample with --rows-per-second


@model(frozen=True, slots=True, kw_only=True)
class Requests:
    """The estimated time, tokens and cost of a language model's answers to all pairs."""

    answers: int  # number of answers that were measured
    seconds: float
    tokens_in: float
    tokens_out: float
    cost: float | None  # None if prices or token counts are unknown


class Estimated(BaseModel):
    """The JSON form of `paraloom estimate`."""

    rows: int
    counted: bool  # whether `rows` was counted; if not, it was estimated or given
    rejected: float  # share of the rows that cannot be used
    kept: float  # share of the usable rows that `where`, `unique: pair` and `near_duplicates` keep
    translated: float  # share of the kept rows that are translated
    sampled: int  # number of sentences that were translated for the estimate
    jobs: dict[str, Job] = {}
    left_out: list[str] = []  # scorers that were not timed
    not_timed: list[str] = []  # stages without an estimate
    requests: int  # number of requests to each language model
    generators: dict[str, Requests] = {}  # by name of a language model that answered
    translation_hours: float = 0.0  # on one machine
    translation_cost: float | None = None  # None without --gpu-hour
    basis: list[str]  # sentences that explain the estimates


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    gpu_hour: Annotated[
        float | None,
        option("PRICE", "Price of one machine per hour, for the cost of translation.", min=0),
    ] = None,
    rows: Annotated[int | None, option("N", "Number of rows in the whole input.", min=1)] = None,
    rows_per_second: Annotated[
        float | None,
        option("RATE", "Number of sentences that another machine translates per second.", min=1e-9),
    ] = None,
    device: Annotated[
        str, option("NAME", "Name of the machine that --rows-per-second describes.")
    ] = "another machine",
    requests: Annotated[
        int,
        option(
            "N", "Number of pairs to send to each language model. The requests cost money.", min=0
        ),
    ] = 0,
    json: JsonFile = None,
) -> None:
    """Run the stages on a sample of 2,000 rows, and extrapolate to the whole input.

    With --rows-per-second, the sample has 200 rows. Training and start-up times are not included.
    A line below the table lists all stages that are not included.
    """
    if rows_per_second is None:
        check_unused(context, "--rows-per-second", "device")
    run, arguments = read_config(config, changes or ()), beam_options(context)
    connect(arguments, [run.run])
    elsewhere = (rows_per_second, device) if rows_per_second else None
    found = estimate(run, rows, elsewhere, requests, arguments)
    if gpu_hour is not None and (hours := found.translation_hours):
        found.translation_cost = hours * gpu_hour
        cost = f"{rate(hours)} hours and costs {rate(found.translation_cost)}"
        found.basis.insert(0, f"One machine translates for {cost}, at {gpu_hour:g} an hour.")
    out = console()
    out.print(job_table(found.jobs))
    out.print(*found.basis, sep="\n", highlight=False)
    write_json(json, found)


def estimate(
    config: Config,
    rows: int | None = None,
    elsewhere: tuple[float, str] | None = None,
    requests: int = 0,
    arguments: Sequence[str] = (),
) -> Estimated:
    """Run stages up to selection on a sample, on this machine, and extrapolate to the whole input.

    `elsewhere` contains the speed (sentences per second) and the name of another machine that will
    translate.
    """
    run, has_candidates = Run.open(config), config.translates or config.is_mined
    if config.translates and config.nmt.model is None and "nmt" not in run.records:
        raise UserError(
            "nmt.model: null: this run trains its own model, which the estimate needs; run "
            "`paraloom train-nmt` with this configuration first"
        )
    seen = small_run.read_beginnings(config, "estimate")
    kept, chosen = choose(seen.pairs, run.input)
    if not len(chosen):
        raise UserError("input.where: no row at the beginning of the files meets the conditions")
    sample = small_run.draw(chosen, _FEW if elsewhere else _SENTENCES, config.seed)
    scale = (rows or seen.rows) * (1 - seen.rejected) / len(seen.pairs)
    left, translated = scale * kept, scale * len(chosen)
    found = Estimated(
        rows=rows or seen.rows,
        counted=seen.counted and not rows,
        rejected=seen.rejected,
        kept=kept / len(seen.pairs),
        translated=len(chosen) / kept,
        sampled=0,
        requests=round(left) if config.chats else 0,
        basis=["Back-translation: none."],
    )
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--runner")
    _, here = parser.parse_known_args(arguments)  # all options except --runner
    asked, ranked = dict[str, GeneratedBy](), ("score", RANKED, "select")
    with tempfile.TemporaryDirectory() as folder:
        if config.chats and requests:
            place = storage.join(folder, "asked")
            small = small_run.configured(run, sample[:requests], place, chats=True)
            made = small_run.take(run, small, here, "generate", ranked=not config.translates)
            asked = made.record(GenerateRecord).generators
        if config.translates or not asked:
            small = small_run.configured(run, sample, storage.join(folder, "translated"))
            say(f"estimate: running the stages on {len(sample):,} rows; this takes minutes")
            first = "back_translate" if config.translates else "ingest"
            made = small_run.take(run, small, here, first, ranked=has_candidates)
        records = {n: of for n, of in made.records.items() if isinstance(of, PairsRecord)}
        workers = local_workers(here)
        jobs = {n: small_run.measured(made, n, record, workers) for n, record in records.items()}
    generated = left * sum(of.n for of in config.chats)
    found.left_out = [n for n in config.score.scorers if n not in small.score.scorers]
    found.jobs["ingest"] = jobs["ingest"].of(found.rows, found.kept)
    for stage, many in {"pivot": 1, "back_translate": config.nmt.candidates}.items():
        if (done := records.get(stage)) is None:
            continue
        count = done.rows_in // many
        if not done.rows_out:
            raise UserError(f"{stage}: none of {count:,} sampled sentences was translated")
        found.sampled = count
        used = made.record(BackTranslateRecord, stage).model
        numbers = ", ".join(used.compute_types) if used else ""
        found.basis = [
            f"Translated: {count:,} sentences sampled from the beginnings of {seen.files} "
            f"file(s), on {jobs[stage].device}, {numbers}, {decoding(config.nmt)}."
        ]
        job = jobs[stage].of(translated, left / translated * many, many)
        if elsewhere:
            job = replace(job, rate=elsewhere[0], cores=cores(), device=elsewhere[1])
        found.jobs[stage] = job
        found.translation_hours += job.seconds / 3600
        left, translated = (n * done.rows_out / count for n in (left, translated))
    rest = {n: jobs[n].of(left * has_candidates + generated) for n in ranked if n in jobs}
    for of in config.chats:
        if (took := asked.get(of.name)) and took.requests:
            found.generators[of.name] = _all_requests(of, took, found.requests)
    if answered := found.generators.values():
        seconds = max(of.seconds for of in answered)  # servers are asked in parallel
        job = replace(rest["score"], device=f"{len(answered)} language model(s)", cores=cores())
        found.jobs["generate"] = replace(job, rate=job.rows / seconds)
    found.jobs |= rest
    wanted = [*TARGETS["corpus"], *(f"selections/{of}/select" for of in config.select.selections)]
    stages = (step.path for step in closure(wanted, plan(Run(config))))
    found.not_timed = [name for name in stages if name not in found.jobs]
    how = "counted" if found.counted else "estimated from the files' sizes and beginnings"
    lines = _basis(config, found, "given by --rows" if rows else how, len(seen.pairs), requests)
    found.basis = [*lines, *found.basis]
    return found


def _all_requests(of: ChatGenerator, took: GeneratedBy, requests: int) -> Requests:
    scale = requests / took.requests
    least = 60 / of.requests_per_minute if of.requests_per_minute else 0
    return Requests(
        answers=took.requests,
        seconds=requests * max(took.seconds / took.requests / of.concurrency, least),
        tokens_in=scale * took.tokens_in,
        tokens_out=scale * took.tokens_out,
        cost=None if took.cost is None else scale * took.cost,
    )


def choose(pairs: pa.Table, options: InputOptions) -> tuple[int, pa.Table]:
    """Return the number of pairs that `input` keeps, and the pairs that are translated."""
    pairs = options.accepted(pairs)
    if (least := options.near_duplicates) and len(pairs):
        from paraloom.beam_jobs.near_duplicates import near_copies

        first, second = (normalised(pairs[of].combine_chunks()) for of in ("source", "reference"))
        pairs = pairs.filter(pa.array(~near_copies(first, second, least)))
    left = len(pairs)
    if options.unique:
        side = "source" if READERS[options.format].has_source else "reference"
        names = ["source", "reference"] if options.unique == "pair" else [side]
        first = pairs.append_column("row", pa.array(np.arange(left))).group_by(names)
        rows = first.aggregate([("row", "min")])["row_min"].combine_chunks()
        pairs = pairs.take(rows.sort())
    return (len(pairs) if options.unique == "pair" else left), pairs


def job_table(jobs: dict[str, Job]) -> Table:
    """Return a table of the estimates for all stages, with the sums of time and disk space."""
    numbers = ("rows", "rate", "time", "disk", "memory")
    table = number_table("Estimates for the whole input", "stage", numbers=numbers)
    for stage, job in jobs.items():
        measured = f"{rate(job.rate)} rows/s, {job.device}"
        taken = _time(job.seconds), _size(job.size), _size(job.memory)
        table.add_row(stage, f"{job.rows:,}", measured, *taken)
    table.add_section()
    seconds, size = (sum(getattr(job, of) for job in jobs.values()) for of in ("seconds", "size"))
    table.add_row("all", "", "", _time(seconds), _size(size))
    return table


def _time(seconds: float) -> str:
    return duration(two_digits(seconds))


def _size(size: float) -> str:
    return decimal(int(two_digits(size))).replace(".0 ", " ")


def _basis(config: Config, found: Estimated, how: str, read: int, requests: int) -> list[str]:
    lines = [
        f"Rows: {how}; {found.rejected:.1%} of the rows that were read cannot be used.",
        f"Stages measured on a core: extrapolated to {cores()} cores.",
        f"Not in the table: {', '.join([*found.not_timed, 'process start-up'])}.",
    ]
    if found.kept < 1 or found.translated < 1:
        text = f"Of {read:,} usable rows, `input` keeps {found.kept:.1%}"
        if config.translates:
            text += f"; of the kept rows, {found.translated:.1%} are translated"
        more = "These percentages may be lower for the whole input, which may repeat more rows."
        lines.insert(1, f"{text}. {more}")
    for of in config.chats:
        said = f"{found.requests:,} requests, not in the table; `--requests 20` measures them."
        if took := found.generators.get(of.name):
            tokens = (f"{two_digits(n):,.0f}" for n in (took.tokens_in, took.tokens_out))
            cost = "" if took.cost is None else f", cost {rate(took.cost)}"
            said = f"{found.requests:,} requests, {_time(took.seconds)}, "
            said += f"{' + '.join(tokens)} tokens{cost}, from {took.answers} answers."
        elif requests:
            said = "gave no answer that can be used."
        lines.append(f"{of.name}: {said}")
    if found.left_out:
        lines.append(f"Not timed, because resources are missing: {', '.join(found.left_out)}.")
    return lines


def rate(value: float) -> str:
    """Format a number with two significant digits and commas between thousands."""
    return f"{two_digits(value):,.0f}" if value >= 10 else f"{value:.2g}"


def two_digits(value: float) -> float:
    """Round a number to two significant digits."""
    return float(f"{value:.2g}")
