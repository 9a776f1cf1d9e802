"""`paraloom estimate`: what a run will take, measured on some of its own input on this machine.

Back-translation is timed on a sample of the input with the run's own model; the other jobs run, by
one worker, on the sample and on copies of it, so that what they take to start can be told from what
they take per row. The rest is multiplication.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Group
from rich.table import Table

from beam_jobs.io.bitext import find_bitext
from beam_jobs.io.bitext.preview import Preview, preview
from beam_jobs.runners.launch import cores
from models.errors import UserError
from models.scorers import SCORERS
from pipeline import tables
from pipeline.commands.corpus.timings import time_jobs, translate
from pipeline.commands.run.status import duration
from pipeline.config import Config
from pipeline.console import console
from pipeline.manifest import Manifest
from pipeline.stage import PAIR_STAGES, Run

_SENTENCES = 2_000  # translated
_READ = 20_000  # rows that they are drawn from


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a stage will take.

    Attributes:
        rows: of the whole input that it will read.
        rate: rows per second that were measured, on `cores` cores.
        size: bytes that it will leave.
        memory: bytes, the peak of a worker process.
    """

    rows: int
    rate: float
    cores: int
    size: float
    memory: int

    @property
    def seconds(self) -> float:
        """On this machine, if all its cores go as fast as those that were timed."""
        return self.rows / self.rate * self.cores / cores()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run will take, and what that follows from.

    Attributes:
        jobs: by stage.
        sentences: that were translated.
        device: that they were translated on, for people.
        loading: seconds until the model was there.
        left_out: scorers that were not timed, because what they need is not made yet.
    """

    preview: Preview
    jobs: dict[str, Job]
    sentences: int
    device: str
    loading: float
    left_out: tuple[str, ...]


def estimate(config: Config) -> Estimate:
    """Measure what the stages of pairs will take.

    Raises:
        UserError: there is no input, no model, or one of them is not what it should be.
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
    drawn = rng.choice(len(seen.pairs), min(_SENTENCES, len(seen.pairs)), replace=False)
    translation = translate(run, model, seen.pairs.take(np.sort(drawn)).combine_chunks())
    scorers, paths = _scorers(run)
    with tempfile.TemporaryDirectory() as folder:
        timed = time_jobs(run, translation.pairs, scorers, paths, Path(folder))
    timed["back_translate"] = translation.timed
    usable = round(seen.rows * (1 - seen.rejected))
    translated = round(usable * len(translation.pairs) / len(drawn))
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
        sentences=len(drawn),
        device=_spoken(translation.device),
        loading=translation.loading,
        left_out=tuple(name for name in config.score.scorers if name not in scorers),
    )


def show(config: Config, gpu_hour: float | None) -> None:
    """Measure, and print hours, money, disk and memory."""
    found = estimate(config)
    lines = [*_costs(found, gpu_hour), *_follows_from(config, found)]
    console().print(Group(_table(found), *lines), highlight=False)


def _model(run: Run) -> str:
    if run.config.input is None:
        raise UserError("input: is missing: there is nothing to estimate from")
    if run.translates_with_own_model and "nmt" not in run.manifest.stages:
        raise UserError(
            "nmt.model: null: this run trains its own model; `paraloom train-nmt` with this "
            "configuration first, then there is one to time"
        )
    return run.model


def _spoken(device: str) -> str:
    """A device for people."""
    if device == "cpu":
        return f"{cores()} CPU cores"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "a GPU"


def _scorers(run: Run) -> tuple[list[str], dict[str, str]]:
    """The scorers whose tables are there already, and these tables."""
    paths = {n: path for n, path in tables.paths(run).items() if n in run.manifest.stages}
    names = [
        name
        for name in run.config.score.scorers
        if name not in SCORERS or SCORERS[name].needs in (None, *paths)
    ]
    return names or ["translation_score"], paths


def _table(found: Estimate) -> Table:
    table = Table("stage", title="What the whole input takes on this machine")
    for name in ("rows", "measured", "time", "disk", "memory of a worker"):
        table.add_column(name, justify="right")
    for stage, job in found.jobs.items():
        on = found.device if stage == "back_translate" else "a core"
        table.add_row(
            stage,
            f"{job.rows:,}",
            f"{job.rate:,.0f} rows/s, {on}",
            duration(job.seconds),
            _bytes(job.size),
            _bytes(job.memory),
        )
    table.add_section()
    jobs = found.jobs.values()
    time_, disk = sum(job.seconds for job in jobs), sum(job.size for job in jobs)
    most = max(job.memory for job in jobs)
    table.add_row("all", "", "", duration(time_), _bytes(disk), _bytes(most))
    return table


def _costs(found: Estimate, gpu_hour: float | None) -> list[str]:
    if gpu_hour is None:
        return []
    hours = found.jobs["back_translate"].seconds / 3600
    return [
        f"Back-translation on machines like this one: {hours:,.2f} hours in all, "
        f"{hours * gpu_hour:,.2f} at {gpu_hour:,.2f} an hour."
    ]


def _follows_from(config: Config, found: Estimate) -> list[str]:
    seen = found.preview
    how = "counted" if seen.counted else "estimated from the files' sizes and beginnings"
    said = [
        f"Rows: {how}; {seen.rejected:.1%} of those looked at cannot be used.",
        f"Translated: {found.sentences:,} sentences drawn from the beginnings of {seen.files} "
        f"file(s), on {found.device}, {config.nmt.engine}, {config.nmt.compute_type}, beam "
        f"{config.nmt.beam}; the model was there after {found.loading:,.1f} s.",
        "Other stages: timed with one worker; their time here takes it that all "
        f"{cores()} cores go as fast. Models trained in the run are not in it, nor further rounds.",
    ]
    if found.left_out:
        said.append(f"Not timed, for what they need is not made yet: {', '.join(found.left_out)}.")
    return said


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if size >= 10 or unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
