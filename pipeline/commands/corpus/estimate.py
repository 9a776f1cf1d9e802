"""`paraloom estimate`: time, cost, disk and memory of a run, measured on a sample of its input.

Back-translation is timed on the sample with the run's model, and so are scorers with a model or of
others. One worker runs the other jobs on many copies of what it makes, or of pairs of references.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from pydantic import BaseModel
from rich.filesize import decimal
from rich.table import Table

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.bitext import READERS, find_bitext
from paraloom.beam_jobs.io.bitext.preview import BitextPreview, preview
from paraloom.beam_jobs.runners.launch import connect
from paraloom.beam_jobs.score import Scoring
from paraloom.beam_jobs.transforms.conditions import reasons
from paraloom.beam_jobs.transforms.directions import BACK, PIVOT
from paraloom.beam_jobs.transforms.duplicates import repeated, row_hash
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.memory import peak_memory
from paraloom.models.text.tokens import moses_tokens
from paraloom.pipeline.commands.corpus.requests import (
    Requests,
    extrapolated,
    in_words,
    rate,
    two_digits,
)
from paraloom.pipeline.commands.corpus.timings import (
    Job,
    Translation,
    ask,
    time_jobs,
    time_scorers,
    timed_scorers,
    translate,
    with_scorers,
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
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import NmtSection
from paraloom.pipeline.report.describe import decoding
from paraloom.pipeline.report.savings import Saving, hours_in_words
from paraloom.pipeline.report.summary import savings_table
from paraloom.pipeline.stage import Run
from paraloom.pipeline.translation import backward, forward

_SENTENCES, _FEW = 2_000, 200  # sentences to translate; where another machine is to do it
_READ = 20_000  # rows that they are sampled from
_TRANSLATIONS = ("pivot", "back_translate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate of a run, and the measurements behind it."""

    preview: BitextPreview
    jobs: dict[str, Job]  # by stage
    translation: Translation | None  # None without back-translation
    left_out: tuple[str, ...]  # scorers that were not timed
    slow: dict[str, float]  # seconds for a row, of scorers timed by themselves
    savings: tuple[Saving, ...]  # by `input.where` and `input.unique`
    requests: int  # of each generator of kind chat
    asked: dict[str, Requests | None]  # by generator that was asked; None if it gave no answer


class Estimated(BaseModel):
    """The JSON form of `paraloom estimate`."""

    rows: int
    counted: bool  # rows, not estimated from the files' sizes and beginnings
    rejected: float  # share of the rows that cannot be used
    sampled: int  # sentences that were translated
    jobs: dict[str, Job]  # by stage
    scorers: dict[str, float]  # seconds for a row, of scorers timed by themselves
    left_out: list[str]  # scorers that were not timed
    savings: list[Saving]
    requests: int  # of each generator of kind chat
    generators: dict[str, Requests]  # those that have answered some
    translation_hours: float  # of one machine
    translation_cost: float | None  # with --gpu-hour


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
    """Translate about 2,000 sentences of the input, time the other jobs on them, extrapolate.

    Estimates exclude model training and process start-up, and have two digits.
    """
    run = read_config(config, changes or ())
    connect(beam_options(context), [run.run])
    elsewhere = (rows_per_second, device) if rows_per_second else None
    found = estimate(run, rows, elsewhere, requests)
    lines = _basis(run, found)
    hours = sum(found.jobs[name].seconds for name in _TRANSLATIONS if name in found.jobs) / 3600
    if gpu_hour is not None and hours:
        cost = f"{hours_in_words(hours)} hours in all, {hours_in_words(hours * gpu_hour)}"
        lines.insert(0, f"Back-translation, one machine: {cost} at {gpu_hour:g} an hour.")
    out = console()
    out.print(job_table(found.jobs, several=bool(run.chats)))
    if found.savings:
        out.print(savings_table(found.savings))
    out.print(*lines, sep="\n", highlight=False)
    seen = found.preview
    results = Estimated(
        rows=seen.rows,
        counted=seen.counted,
        rejected=seen.rejected,
        sampled=found.translation.job.rows if found.translation else 0,
        jobs=found.jobs,
        scorers=found.slow,
        left_out=list(found.left_out),
        savings=list(found.savings),
        requests=found.requests,
        generators={name: of for name, of in found.asked.items() if of},
        translation_hours=hours,
        translation_cost=None if gpu_hour is None else hours * gpu_hour,
    )
    write_json(json, results)


def estimate(
    config: Config,
    rows: int | None = None,
    elsewhere: tuple[float, str] | None = None,
    requests: int = 0,
) -> Estimate:
    """Measure the stages of pairs on a sample.

    Args:
        rows: how many the input has, if not as many as its files.
        elsewhere: sentences a second that another machine translates, and its name.
        requests: pairs that each generator of kind chat is asked about.
    """
    run = Run(config=config, manifest=Manifest(config.run))
    if config.input is None:
        raise UserError("input: is missing: there is nothing to estimate from")
    if config.translates and config.nmt.model is None and "nmt" not in run.manifest.stages:
        raise UserError(
            "nmt.model: null: this run trains its own model; run `paraloom train-nmt` with this "
            "configuration first"
        )
    bitexts = find_bitext(config.input.format, config.input.paths, config.input.layout)
    seen = preview(bitexts, rows=_READ, max_characters=MAX_CHARACTERS)
    if rows:
        seen = replace(seen, rows=rows)
    accepted, pairs, saved = choose(seen.pairs, config.input)
    if not len(pairs):
        raise UserError("input.where: no row at the beginning of the files meets the conditions")
    sentences = min(_FEW if elsewhere else _SENTENCES, len(pairs))
    rng = np.random.default_rng(config.seed)
    sample = pairs.take(np.sort(rng.choice(len(pairs), sentences, replace=False))).combine_chunks()
    languages = config.languages.source or "", config.languages.target or ""
    scale = seen.rows * (1 - seen.rejected) / len(seen.pairs)
    total, some = round(scale * accepted) if config.chats else 0, sample.slice(0, requests)
    chats = config.chats if requests else []
    asked = {of.name: extrapolated(of, ask(of, some, languages), total) for of in chats}
    answered = [of for of in asked.values() if of]
    scorers, slow, resources = timed_scorers(run)
    seconds: dict[str, float] = {}
    made: dict[str, Translation] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if config.is_plain_text:
            text = sample.select(schema.TEXT.names)
            made["pivot"] = translate(run, PIVOT, forward(config), text, folder)
            sample = made["pivot"].pairs
        if config.translates:
            made["back_translate"] = translate(run, BACK, backward(run), sample, folder)
            # As many rows as without `nmt.candidates`: jobs are timed on many copies of them.
            sample = made["back_translate"].pairs[:sentences]
        else:
            sample = with_stand_ins(sample)
        fast = {name: path for name, path in resources.items() if isinstance(path, str)}
        timed = time_jobs(run, sample, scorers or ["translation_score"], fast, folder)
        if slow:
            scoring = Scoring(slow, resources, config.score.sources, run.language)
            seconds = time_scorers(scoring, sample)
            timed["score"] = with_scorers(timed["score"], seconds, model=bool(scoring.models))
        scored = 0.0  # seconds for a candidate of a language model
        if answered and config.has_model:
            scoring = Scoring(["reference_score"], {"translation_model": backward(run).factory})
            scored = time_scorers(scoring, sample)["reference_score"]
    jobs = {"ingest": timed.pop("ingest").of(seen.rows)}
    left, translated = scale * accepted, scale * len(pairs)
    generated = left * sum(of.n for of in config.chats)
    for stage, each in made.items():
        job = each.job.of(translated)
        if elsewhere:
            job = replace(job, rate=elsewhere[0], cores=cores(), device=elsewhere[1])
        # All rows get translations, also those whose sources are translated for others.
        jobs[stage] = replace(job, size=job.size * left / translated)
        share = len(each.pairs) / each.job.rows
        left, translated = left * share, translated * share
    rest = {stage: job.of(left * config.translates + generated) for stage, job in timed.items()}
    if answered:  # all servers are asked at once; then the model scores
        job, took = rest["score"], max(of.seconds for of in answered) + generated * scored
        device, size = f"{len(answered)} language model(s)", sum(of.size for of in answered)
        job = replace(job, device=device, cores=cores(), memory=max(job.memory, peak_memory()))
        jobs["generate"] = replace(job, rate=job.rows / took, size=job.size + size)
    jobs |= rest
    hours = sum(jobs[stage].seconds / max(jobs[stage].rows, 1) for stage in made) / 3600
    return Estimate(
        preview=seen,
        jobs=jobs,
        translation=made.get("back_translate"),
        left_out=tuple(n for n in config.score.names if n not in (*scorers, *slow)),
        slow=seconds,
        savings=tuple(
            Saving(key, round(scale * n), round(scale * tokens), scale * n * hours)
            for key, (n, tokens) in saved.items()
        ),
        requests=total,
        asked=asked,
    )


def choose(
    pairs: pa.Table, options: InputOptions
) -> tuple[int, pa.Table, dict[str, tuple[int, int]]]:
    """Apply `input.where` and `input.unique` to some pairs.

    Returns:
        The number of rows that ingest accepts; the rows whose sources are translated; and, by the
        key that saves them, the rows that are not, and the tokens of their sources.
    """
    saved: dict[str, tuple[int, int]] = {}
    has_source = READERS[options.format].has_source
    text = "source" if has_source else "reference"
    language = options.source_language if has_source else options.target_language

    def save(key: str, left: pa.Table, lost: np.ndarray) -> pa.Table:
        tokens = moses_tokens(left[text].filter(pa.array(lost)), language)
        saved[key] = int(np.count_nonzero(lost)), len(tokens.values)
        return left.filter(pa.array(~lost))

    left = pairs
    if options.where:
        source, reference = (left[side].combine_chunks() for side in ("source", "reference"))
        why = reasons(source, reference, options.conditions, options.languages, left)
        left = save("input.where", left, why != "")
    accepted = len(left)
    if options.unique:
        columns = ("source", "reference") if options.unique == "pair" else (text,)
        hashes = row_hash(*(left[name].combine_chunks() for name in columns))
        one_unit = np.zeros(accepted, np.int64)
        left = save("input.unique", left, repeated(hashes, one_unit, np.arange(accepted)))
        accepted = len(left) if options.unique == "pair" else accepted
    return accepted, left, saved


def job_table(jobs: dict[str, Job], *, several: bool = False) -> Table:
    """The stages as they are estimated; with several generators also `generate`, timed or not."""
    numbers = ("rows", "measured", "time", "disk", "memory of a worker")
    title = "Estimates for the whole input on this machine"
    table = number_table(title, "stage", numbers=numbers)
    unknown = several and "generate" not in jobs

    seconds, size, memory = 0.0, 0.0, 0
    for stage, job in jobs.items():
        if stage == "score" and unknown:
            table.add_row("generate", f"{job.rows:,}", "not measured: --requests")
        measured = f"{rate(job.rate)} rows/s, {job.device}"
        table.add_row(stage, f"{job.rows:,}", measured, *_taken(job.seconds, job.size, job.memory))
        seconds, size, memory = seconds + job.seconds, size + job.size, max(memory, job.memory)
    table.add_section()
    table.add_row("all but generate" if unknown else "all", "", "", *_taken(seconds, size, memory))
    return table


def _taken(seconds: float, size: float, memory: int) -> tuple[str, ...]:
    sizes = (decimal(int(two_digits(each))).replace(".0 ", " ") for each in (size, memory))
    return duration(two_digits(seconds)), *sizes


def _basis(config: Config, found: Estimate) -> list[str]:
    """What the estimates are based on, in lines."""
    seen, nmt = found.preview, NmtSection.model_validate(config.nmt.model_dump())
    how = "counted" if seen.counted else "estimated from the files' sizes and beginnings"
    lines = [
        f"Rows: {how}; {seen.rejected:.1%} of those read cannot be used.",
        "Back-translation: none; other references stand in for candidates, to time the jobs.",
        f"Other stages: timed with one worker, extrapolated to {cores()} cores.",
        "Estimates exclude model training, process start-up and further rounds.",
    ]
    if made := found.translation:
        lines[1] = (
            f"Translated: {made.job.rows:,} sentences sampled from the beginnings of {seen.files} "
            f"file(s), on {made.job.device}, {config.nmt.engine}, {config.nmt.compute_type}, "
            f"{decoding(nmt)}; loading the model took {made.loading:,.1f} s."
        )
    if config.input and config.input.unique and len(seen.pairs) != seen.rows:
        repeats = f"counted among {len(seen.pairs):,} rows; the whole input repeats more."
        lines.insert(1, f"Repeats: {repeats}")
    if found.slow:
        rates = (f"{name} {rate(1 / each)}" for name, each in found.slow.items())
        lines.append(f"Scorers timed by themselves, rows/s: {', '.join(rates)}.")
    for of in config.chats:
        said = f"{found.requests:,} requests, whose time is not known; `--requests 20` asks it."
        if of.name in found.asked:
            took = found.asked[of.name]
            said = in_words(took, found.requests) if took else "gave no answer that counts."
        lines.append(f"{of.name}: {said}")
    if found.left_out:
        lines.append(f"Not timed, for their resources do not exist: {', '.join(found.left_out)}.")
    return lines
