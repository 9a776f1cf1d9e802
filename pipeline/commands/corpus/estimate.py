"""`paraloom estimate`: time, cost, disk and memory of a run, measured on a sample of its input.

Back-translation is timed on the sample with the run's model. One worker runs the other jobs twice,
on the sample and on many copies of it: the difference is the time per row, without start-up.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import typer
from rich.console import Group
from rich.filesize import decimal
from rich.table import Table

from paraloom.beam_jobs.directions import BACK, PIVOT
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.bitext import READERS, find_bitext
from paraloom.beam_jobs.io.bitext.preview import Preview, preview
from paraloom.beam_jobs.runners.launch import connect
from paraloom.beam_jobs.transforms.conditions import reasons
from paraloom.beam_jobs.transforms.duplicates import repeated, row_hash
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.scorers import SCORERS
from paraloom.models.text.tokens import moses_tokens
from paraloom.pipeline.commands.corpus.timings import Translation, time_jobs, translate
from paraloom.pipeline.commands.options import Changes, ConfigFile, GpuHour, beam_options
from paraloom.pipeline.commands.run.status import duration
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.options import InputOptions
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import NmtSection
from paraloom.pipeline.report.describe import decoding
from paraloom.pipeline.report.savings import Saving
from paraloom.pipeline.report.summary import savings_table
from paraloom.pipeline.stage import PAIR_STAGES, Run
from paraloom.pipeline.stages.score import resource_paths
from paraloom.pipeline.translation import backward, forward

_SENTENCES = 2_000  # sentences to translate
_READ = 20_000  # rows that they are sampled from
TRANSLATIONS = ("pivot", "back_translate")
"""The stages that translate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The estimate of one stage."""

    rows: int  # number that it will read; of a translation, that it will translate
    rate: float  # rows per second, as measured on `cores` cores
    cores: int
    size: float  # bytes that it will write
    memory: int  # peak of a worker process, in bytes

    @property
    def seconds(self) -> float:
        """On this machine, if all its cores are as fast as those measured."""
        return self.rows / self.rate * self.cores / cores()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate of a run, and the measurements behind it."""

    preview: Preview
    jobs: dict[str, Job]  # by stage
    translation: Translation
    left_out: tuple[str, ...]
    """Scorers that were not timed, because their resource does not exist yet."""
    savings: tuple[Saving, ...] = ()  # of `input.where` and `input.unique`

    @property
    def on_all_cores(self) -> tuple[str, ...]:
        """Stages with one process: those that load a translation model."""
        return (*TRANSLATIONS, "score") if self.translation.scoring else TRANSLATIONS

    @property
    def translation_seconds(self) -> float:
        """Of all translations."""
        return sum(self.jobs[name].seconds for name in TRANSLATIONS if name in self.jobs)


def command(
    context: typer.Context, config: ConfigFile, changes: Changes = None, gpu_hour: GpuHour = None
) -> None:
    """Translate about 2,000 sentences of the input, time the other jobs on them, extrapolate.

    Estimates exclude model training and process start-up.
    """
    run = read_config(config, changes or ())
    connect(beam_options(context), [run.run])
    found = estimate(run)
    lines = _basis_lines(run, found)
    if gpu_hour is not None:
        hours = found.translation_seconds / 3600
        cost = f"{hours:,.2f} hours in all, {hours * gpu_hour:,.2f} at {gpu_hour:,.2f} an hour."
        lines.insert(0, f"Back-translation on machines like this one: {cost}")
    tables = [_table(found), *([savings_table(found.savings)] if found.savings else [])]
    console().print(Group(*tables, *lines), highlight=False)


def estimate(config: Config) -> Estimate:
    """Measure the stages of pairs on a sample."""
    run = Run(config=config, manifest=Manifest(config.run))
    _check_model(run)
    seen = preview(
        find_bitext(run.input.format, run.input.paths),
        rows=_READ,
        max_characters=run.input.max_characters,
    )
    if not len(seen.pairs):
        raise UserError("input: none of the rows at the beginning of the files can be used")
    pairs = choose(seen.pairs, run.input)
    if not len(pairs.translated):
        raise UserError("input.where: no row at the beginning of the files meets the conditions")
    rng = np.random.default_rng(config.seed)
    sentences = min(_SENTENCES, len(pairs.translated))
    chosen = np.sort(rng.choice(len(pairs.translated), sentences, replace=False))
    sample = pairs.translated.take(chosen).combine_chunks()
    translations: dict[str, Translation] = {}
    if config.is_plain_text:
        text = sample.select(schema.TEXT.names)
        translations["pivot"] = translate(run, PIVOT, forward(config), text)
        sample = translations["pivot"].pairs
    translation = translate(run, BACK, backward(run), sample)
    translations["back_translate"] = translation
    scorers, paths = _scorers(run)
    with tempfile.TemporaryDirectory() as folder:
        # As many rows as without `nmt.candidates`: jobs are timed on many copies of them.
        timed = time_jobs(run, translation.pairs[:sentences], scorers, paths, Path(folder))
    timed |= {stage: made.timed for stage, made in translations.items()}
    scale = seen.rows * (1 - seen.rejected) / len(seen.pairs)
    rows, distinct = float(seen.rows), scale * len(pairs.translated)
    # With a model, `score` has one process, too.
    on_all_cores = {*translations, *(["score"] if translation.scoring else [])}
    jobs = {}
    for stage in (name for name in PAIR_STAGES if name in timed):
        more = translation.scoring if stage == "score" else 0.0
        jobs[stage] = Job(
            rows=round(distinct if stage in translations else rows),
            rate=1 / (timed[stage].seconds / timed[stage].rows + more),
            cores=cores() if stage in on_all_cores else 1,
            size=timed[stage].size * rows,
            memory=timed[stage].memory,
        )
        if stage == "ingest":
            rows = scale * pairs.accepted
        elif made := translations.get(stage):
            share = len(made.pairs) / made.timed.rows
            rows, distinct = rows * share, distinct * share
    hours = sum(jobs[s].seconds / max(jobs[s].rows, 1) for s in translations) / 3600
    savings = (
        Saving(key, round(scale * rows), round(scale * tokens), scale * rows * hours)
        for key, (rows, tokens) in pairs.saved.items()
    )
    return Estimate(
        preview=seen,
        jobs=jobs,
        translation=translation,
        left_out=tuple(
            name
            for name in config.score.names
            if name not in scorers
            and (name not in SCORERS or SCORERS[name].resource_name != "translation_model")
        ),
        savings=tuple(savings),
    )


class Choice(NamedTuple):
    """What `input.where` and `input.unique` leave of some pairs.

    Attributes:
        accepted: number of rows that ingest accepts.
        translated: the rows whose sources are translated.
        saved: rows that are not, and the tokens of their sources, by the key that saves them.
    """

    accepted: int
    translated: pa.Table
    saved: dict[str, tuple[int, int]]


def choose(pairs: pa.Table, options: InputOptions) -> Choice:
    """Apply `input.where` and `input.unique` to some pairs."""
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
        why = reasons(source, reference, options.conditions, options.languages)
        left = save("input.where", left, why != "")
    accepted = len(left)
    if options.unique:
        columns = ("source", "reference") if options.unique == "pair" else (text,)
        hashes = row_hash(*(left[name].combine_chunks() for name in columns))
        one_unit = np.zeros(accepted, np.int64)
        left = save("input.unique", left, repeated(hashes, one_unit, np.arange(accepted)))
        accepted = len(left) if options.unique == "pair" else accepted
    return Choice(accepted, left, saved)


def _check_model(run: Run) -> None:
    if run.config.input is None:
        raise UserError("input: is missing: there is nothing to estimate from")
    if run.config.nmt.model is None and "nmt" not in run.manifest.stages:
        raise UserError(
            "nmt.model: null: this run trains its own model; run `paraloom train-nmt` with this "
            "configuration first"
        )


def _device(found: Estimate) -> str:
    if found.translation.device == "cpu":
        return f"{cores()} CPU cores"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "a GPU"


def _scorers(run: Run) -> tuple[list[str], dict[str, str]]:
    """The scorers whose resources exist already, and the paths of these resources.

    Without those of others and those with a model: they may take hours for so many copies.
    """
    paths = {n: path for n, path in resource_paths(run).items() if n in run.manifest.stages}
    names = [
        name
        for name in run.config.score.names
        if name == "translation_score"
        or (name in SCORERS and SCORERS[name].resource_name in (None, *paths))
    ]
    return names or ["translation_score"], paths


def _table(found: Estimate) -> Table:
    numbers = ("rows", "measured", "time", "disk", "memory of a worker")
    title = "Estimates for the whole input on this machine"
    table = number_table(title, "stage", numbers=numbers)
    for stage, job in found.jobs.items():
        on = _device(found) if stage in found.on_all_cores else "a core"
        table.add_row(
            stage,
            f"{job.rows:,}",
            f"{job.rate:,.0f} rows/s, {on}",
            duration(job.seconds),
            decimal(round(job.size)),
            decimal(job.memory),
        )
    table.add_section()
    jobs = found.jobs.values()
    time_, disk = sum(job.seconds for job in jobs), sum(job.size for job in jobs)
    most = max(job.memory for job in jobs)
    table.add_row("all", "", "", duration(time_), decimal(round(disk)), decimal(most))
    return table


def _basis_lines(config: Config, found: Estimate) -> list[str]:
    seen, translation = found.preview, found.translation
    nmt = NmtSection.model_validate(config.nmt.model_dump())
    how = "counted" if seen.counted else "estimated from the files' sizes and beginnings"
    lines = [
        f"Rows: {how}; {seen.rejected:.1%} of those read cannot be used.",
        *(
            [f"Repeats: counted among {len(seen.pairs):,} rows; the whole input repeats more."]
            if config.input and config.input.unique and len(seen.pairs) != seen.rows
            else []
        ),
        f"Translated: {translation.timed.rows:,} sentences sampled from the beginnings of "
        f"{seen.files} file(s), on {_device(found)}, {config.nmt.engine}, "
        f"{config.nmt.compute_type}, {decoding(nmt)}; loading the model took "
        f"{translation.loading:,.1f} s.",
        f"Other stages: timed with one worker, extrapolated to {cores()} cores.",
        "Estimates exclude model training, process start-up and further rounds.",
    ]
    if found.left_out:
        lines.append(
            "Not timed, because their resources do not exist yet, they have a model, or they are "
            f"not Paraloom's: {', '.join(found.left_out)}."
        )
    return lines
