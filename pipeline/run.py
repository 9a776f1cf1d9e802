"""Running the stages of a run in order, each one only if it is not finished."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from beam_jobs.io import remote, storage
from beam_jobs.io.shards import DamagedError
from beam_jobs.runners.launch import connect
from models.errors import UserError
from models.memory import forget_peak, peak_memory
from pipeline.choice import check_choice, read_labelled
from pipeline.config import Config
from pipeline.localise import localised, remote_paths
from pipeline.manifest import Manifest, locked
from pipeline.records import StageRecord
from pipeline.report import write_report
from pipeline.report.data_card import write_data_card
from pipeline.report.final_view import restrict
from pipeline.report.summary import show_damage, show_start, show_summary
from pipeline.rounds import taken_over
from pipeline.stage import Run, Stage
from pipeline.stages import STAGES, after, closure, finished, key_of, plan


def run_stages(
    config: Config, targets: Sequence[str], arguments: Sequence[str] = (), *, force: bool = False
) -> Run:
    """Bring a run up to `targets`, doing only what is not done.

    Args:
        targets: names of stages; what they need is run before.
        arguments: for Beam, as they stand on the command line after `--`.
        force: run the targets' stages even if they are finished.

    Raises:
        UserError: bad input, or a disk that is full; what was finished stays finished.
    """
    needed = {stage.name for target in targets for stage in closure(target, config)}
    stages = [stage for stage in plan(config) if stage.name in needed]
    connect(arguments, remote_paths(config))
    here = localised(config)
    check(here, [stage.name for stage in stages])
    if not stages:
        raise UserError(f"this configuration has nothing to do for {' and '.join(targets)}")
    with locked(config.run):
        _sweep(config.run)
        run = Run(config=here, manifest=Manifest(config.run), arguments=arguments)
        names = [stage.name for stage in stages]
        planned = [stage.name for stage in plan(config) if stage.wanted(config)]
        run.manifest.begin(config, planned, names)
        forced = {stage.name for stage in stages if force and stage.base in targets}
        ran: set[str] = set()
        mended: set[str] = set()
        doubted: set[str] = set()
        while True:
            try:
                _make(run, stages, forced, doubted, ran)
                record = restrict(run.manifest.record, names)
                if "corpus" in names:
                    write_data_card(config.run, record)
                write_report(config.run, record)
                break
            except DamagedError as error:
                stage = _stage_of(error.path, run, names)
                if stage is None:
                    raise
                if error.path in mended:
                    raise UserError(
                        f"{error.path}: damaged again after it was made anew; is the disk sound?"
                    ) from error
                mended.add(error.path)
                doubted.add(stage)
                show_damage(error.path)
        _tidy(config.run)
        show_summary(run, names, ran)
        return run


def _make(
    run: Run, stages: Sequence[Stage], forced: set[str], doubted: set[str], ran: set[str]
) -> None:
    """Make the stages that are not finished, in order, and note in `ran` which.

    Args:
        forced: stages to make from nothing; each leaves the set once it is made.
        doubted: stages with a damaged part file: of a stage that is made, every part file is held
            against its checksum, and what is not intact is made again. They leave the set too.
    """
    for stage in stages:
        made_from = key_of(stage, run)
        anew = stage.name in forced | doubted
        if not anew and finished(stage, run):
            continue
        if not anew and (copied := taken_over(stage, run, made_from)):
            run.manifest.finish(stage.name, copied)
            continue
        show_start(stage.name)
        forgotten = run.manifest.forget(after({stage.name}, run.config))
        run.manifest.start(stage.name)
        if stage.name in forced:
            _unfinish(run.folder(stage.name))
        forget_peak()
        try:
            account = stage.make(run.at(stage.round), made_from)
        except DamagedError:
            run.manifest.remember(forgotten)  # what is made again may well be as it was
            raise
        record = StageRecord.of_stage(stage.name, {"key": made_from, **account})
        record.peak_memory = max(record.peak_memory, peak_memory())
        run.manifest.finish(stage.name, record)
        ran.add(stage.name)
        forced.discard(stage.name)
        doubted.discard(stage.name)
        before = forgotten.pop(stage.name, None)
        if before and before.digest == record.digest:
            run.manifest.remember(forgotten)  # made from the same: each has still its key


def _stage_of(path: str, run: Run, stages: Sequence[str]) -> str | None:
    """The stage whose folder holds the file."""
    return next((stage for stage in stages if path.startswith(f"{run.folder(stage)}/")), None)


def check(config: Config, stages: Sequence[str]) -> None:
    """See that the files, the parser and the encoder that a configuration names are there.

    Now, not when the hours of work that do not depend on them are done.

    Raises:
        UserError: names the key and the path.
    """
    if "ingest" in stages and config.input is None:
        raise UserError("input: is missing")
    for key, path in config.files(lambda mark: mark.checked).items():
        if not remote.there(path):
            raise UserError(f"{key}: {path} is not there")
    if "choice" in stages:
        check_choice(config.select)
    if "choice" in stages or "loop" in stages:
        read_labelled(config.select.labelled_paths)
    if "statistics" in stages and config.statistics and config.statistics.spacy:
        from models.text.parses import Parser

        try:
            Parser(config.statistics.spacy)
        except UserError as error:
            raise UserError(f"statistics.spacy: {error}") from error
    if "embeddings" in stages:
        from models.embeddings.encoders import check_encoder

        try:
            check_encoder(config.embeddings)
        except ValueError as error:
            raise UserError(f"embeddings.{error}") from error


def _sweep(folder: str) -> None:
    """Remove what a killed process left under a temporary name (models.files)."""
    here = remote.local_workdir(folder)
    for name in ("manifest.json", "evaluation.json", *(stage.name for stage in STAGES)):
        places = (here, *here.glob("rounds/*"))
        for path in (path for place in places for path in place.glob(f".{name}.*")):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _tidy(folder: str) -> None:
    """Remove what this machine held of a run in object storage; logs stay."""
    if storage.is_remote(folder):
        for path in remote.local_workdir(folder).iterdir():
            if path.is_dir() and path.name != "logs":
                shutil.rmtree(path, ignore_errors=True)


def _unfinish(folder: str) -> None:
    place = storage.join(folder, "receipts")
    for name in storage.names(place):
        storage.remove(storage.join(place, name))
