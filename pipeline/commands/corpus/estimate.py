"""`paraloom estimate`: time, cost, disk and memory of a run, measured on a sample of its input.

Back-translation is timed on the sample with the run's model. One worker runs the other jobs twice,
on the sample and on many copies of it: the difference is the time per row, without start-up.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer
from rich.console import Group
from rich.filesize import decimal
from rich.table import Table

from beam_jobs.io.bitext import find_bitext
from beam_jobs.io.bitext.preview import Preview, preview
from beam_jobs.runners.launch import connect
from models.cpu import cores
from models.errors import UserError
from models.scorers import SCORERS
from pipeline.commands.corpus.timings import Translation, time_jobs, translate
from pipeline.commands.options import Changes, ConfigFile, GpuHour, beam_options
from pipeline.commands.run.status import duration
from pipeline.config import Config, read_config
from pipeline.console import console, number_table
from pipeline.manifest import Manifest
from pipeline.stage import PAIR_STAGES, Run
from pipeline.stages.score import resource_paths

_SENTENCES = 2_000  # sentences to translate
_READ = 20_000  # rows that they are sampled from


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The estimate of one stage."""

    rows: int  # number that it will read
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
        hours = found.jobs["back_translate"].seconds / 3600
        cost = f"{hours:,.2f} hours in all, {hours * gpu_hour:,.2f} at {gpu_hour:,.2f} an hour."
        lines.insert(0, f"Back-translation on machines like this one: {cost}")
    console().print(Group(_table(found), *lines), highlight=False)


def estimate(config: Config) -> Estimate:
    """Measure the stages of pairs on a sample.

    Raises:
        UserError: the input or the model is missing or cannot be read.
    """
    run = Run(config=config, manifest=Manifest(config.run))
    model = _model(run)
    seen = preview(
        find_bitext(run.input.format, run.input.paths),
        rows=_READ,
        max_characters=run.input.max_characters,
    )
    if not len(seen.pairs):
        raise UserError("input: none of the rows at the beginning of the files can be used")
    rng = np.random.default_rng(config.seed)
    chosen = rng.choice(len(seen.pairs), min(_SENTENCES, len(seen.pairs)), replace=False)
    translation = translate(run, model, seen.pairs.take(np.sort(chosen)).combine_chunks())
    scorers, paths = _scorers(run)
    with tempfile.TemporaryDirectory() as folder:
        timed = time_jobs(run, translation.pairs, scorers, paths, Path(folder))
    timed["back_translate"] = translation.timed
    usable = round(seen.rows * (1 - seen.rejected))
    translated = round(usable * len(translation.pairs) / len(chosen))
    jobs = {}
    for stage in PAIR_STAGES:
        rows = {"ingest": seen.rows, "back_translate": usable}.get(stage, translated)
        jobs[stage] = Job(
            rows=rows,
            rate=timed[stage].rows / timed[stage].seconds,
            cores=cores() if stage == "back_translate" else 1,
            size=timed[stage].size * rows,
            memory=timed[stage].memory,
        )
    return Estimate(
        preview=seen,
        jobs=jobs,
        translation=translation,
        left_out=tuple(name for name in config.score.scorers if name not in scorers),
    )


def _model(run: Run) -> str:
    if run.config.input is None:
        raise UserError("input: is missing: there is nothing to estimate from")
    if run.config.nmt.model is None and "nmt" not in run.manifest.stages:
        raise UserError(
            "nmt.model: null: this run trains its own model; run `paraloom train-nmt` with this "
            "configuration first"
        )
    return run.model


def _device(found: Estimate) -> str:
    if found.translation.device == "cpu":
        return f"{cores()} CPU cores"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "a GPU"


def _scorers(run: Run) -> tuple[list[str], dict[str, str]]:
    """The scorers whose resources exist already, and the paths of these resources."""
    paths = {n: path for n, path in resource_paths(run).items() if n in run.manifest.stages}
    names = [
        name
        for name in run.config.score.scorers
        if name not in SCORERS or SCORERS[name].resource_name in (None, *paths)
    ]
    return names or ["translation_score"], paths


def _table(found: Estimate) -> Table:
    numbers = ("rows", "measured", "time", "disk", "memory of a worker")
    title = "Estimates for the whole input on this machine"
    table = number_table(title, "stage", numbers=numbers)
    for stage, job in found.jobs.items():
        on = _device(found) if stage == "back_translate" else "a core"
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
    how = "counted" if seen.counted else "estimated from the files' sizes and beginnings"
    lines = [
        f"Rows: {how}; {seen.rejected:.1%} of those read cannot be used.",
        f"Translated: {translation.timed.rows:,} sentences sampled from the beginnings of "
        f"{seen.files} file(s), on {_device(found)}, {config.nmt.engine}, "
        f"{config.nmt.compute_type}, beam {config.nmt.beam}; loading the model took "
        f"{translation.loading:,.1f} s.",
        f"Other stages: timed with one worker, extrapolated to {cores()} cores.",
        "Estimates exclude model training, process start-up and further rounds.",
    ]
    if found.left_out:
        lines.append(
            f"Not timed, because their resources do not exist yet: {', '.join(found.left_out)}."
        )
    return lines
