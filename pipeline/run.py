"""Running the stages of a run in order, each one only if it is not up to date."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from apache_beam.options.pipeline_options import StandardOptions

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.launch import connect, parse_options
from paraloom.beam_jobs.engine.shards import EARLIER, RECEIPTS, DamagedError
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.runners.remote_jobs import listening
from paraloom.beam_jobs.storage import remote
from paraloom.models.errors import UserError, reading
from paraloom.models.files import finish_killed, looked_up
from paraloom.models.hub import is_hub_name
from paraloom.models.memory import forget_peak, peak_memory
from paraloom.models.options import InputPath
from paraloom.models.printing import say
from paraloom.pipeline import notices
from paraloom.pipeline.commands.summary import show_summary
from paraloom.pipeline.config import Config
from paraloom.pipeline.manifest import (
    Manifest,
    check_selection,
    current,
    locked,
    restrict,
    with_selections,
)
from paraloom.pipeline.names import PAIR_STAGES, folder_of, stage_path
from paraloom.pipeline.pages.data_card import write_data_card
from paraloom.pipeline.pages.encoder_card import write_encoder_cards
from paraloom.pipeline.pages.report import write_report
from paraloom.pipeline.plan import closure, dependents, is_up_to_date, key_of, outdated, plan
from paraloom.pipeline.rounds import copy_finished
from paraloom.pipeline.stage import Run, Stage
from paraloom.pipeline.stages import STAGES
from paraloom.pipeline.stages.ingest import check_replaces


def run_stages(
    config: Config,
    targets: Sequence[str],
    arguments: Sequence[str] = (),
    *,
    force: bool = False,
    selection: str = "",
) -> Run:
    """Bring a run up to `targets`; stages that are up to date are not run again.

    Args:
        targets: names of stages; those that they depend on are run before. With `select`, the
            corpora of all named selections are made.
        arguments: for Beam, as on the command line after `--`.
        force: re-run the targets' stages even if up to date.
        selection: the named selection whose stages are meant.
    """
    connect(arguments, remote_paths(config))
    config = with_selections(config)
    check_selection(config.run, config.select.named, selection)
    wanted = [stage_path(target, selection) for target in targets]
    if "select" in wanted:
        wanted += [stage_path("select", name) for name in config.select.selections]
    needed = {stage.name for target in wanted for stage in closure(target, config)}
    stages = [stage for stage in plan(config) if stage.name in needed]
    names = [stage.name for stage in stages]
    if set(names) & set(PAIR_STAGES):
        check_visible(config, arguments)
    here = localised(config)
    check(here, stages)
    if not stages:
        raise UserError(f"this configuration has nothing to do for {' and '.join(targets)}")
    with locked(config.run):
        remove_temporary(config.run)
        run = Run(config=here, manifest=Manifest(config.run), arguments=arguments)
        planned = [stage.name for stage in plan(config) if stage.enabled(config)]
        if "ingest" in names and not force:
            check_replaces(run)
        run.manifest.begin(config, planned, names, outdated(run))
        state = _State(forced={stage.name for stage in stages if force and stage.kind in targets})
        while True:
            try:
                _make_stages(run, stages, state)
                write_pages(run.manifest, config.run, names)
                break
            except DamagedError as error:
                _plan_repair(error, run, names, state)
        remove_local_copies(config.run)
        show_summary(run, names, state.ran)
        return run


def write_pages(manifest: Manifest, folder: str, names: Sequence[str]) -> None:
    """Write the cards of the stages in `names`, and the report."""
    record = restrict(manifest.record, names)
    for selection in ("", *record.config.select.named):
        if stage_path("select", selection) in names:
            write_data_card(folder, record, selection)
    write_encoder_cards(folder, record)
    write_report(folder, current(manifest.record))


def localised(config: Config) -> Config:
    """The configuration with remote paths replaced by the paths of local copies.

    Libraries open word vectors, phrase pairs and labelled pairs by themselves. The bitext and the
    translation model stay where they are: workers read them in pieces, or copy them.
    """

    def local(key: str, path: str, mark: InputPath) -> str:
        if not mark.copied or not storage.is_remote(path):
            return path
        with reading(key):
            return remote.localise(path)

    return config.map_files(local)


def check_visible(config: Config, arguments: Sequence[str]) -> None:
    """Check that Dataflow's workers see the run and what they read of it, if jobs run there."""
    if parse_options(arguments).view_as(StandardOptions).runner == dataflow.RUNNER:
        hub = config.files(lambda mark: mark.hub)
        read = config.files(lambda mark: not mark.copied)
        for key, path in {"run": config.run, **read}.items():
            if not (key in hub and is_hub_name(path)):
                dataflow.check_visible(key, path)


def remote_paths(config: Config) -> list[str]:
    """The run folder and the input files of a configuration, those in object storage."""
    return [path for path in (config.run, *config.files().values()) if storage.is_remote(path)]


def check(config: Config, stages: Sequence[Stage]) -> None:
    """Check before any work the files of the configuration and what stages need; print notices."""
    names = config.files(lambda mark: mark.hub)
    for key, path in config.files(lambda mark: mark.checked).items():
        if not remote.exists(path) and not (key in names and is_hub_name(path)):
            is_name = key in names and not Path(path).is_absolute() and not storage.is_remote(path)
            on_hub = "; a model of the Hub is named owner/name or owner/name@revision"
            raise UserError(
                f"{key}: {path} is not there{looked_up(path)}{on_hub if is_name else ''}"
            )
    for check_stage in dict.fromkeys(stage.check for stage in stages):
        check_stage(config)
    notices.notify(notices.of_configuration(config, [stage.name for stage in stages]))


@dataclass(slots=True)
class _State:
    forced: set[str]  # stages to make from nothing
    suspect: set[str] = field(default_factory=set)
    """Stages with a damaged part file. When such a stage is made, the checksums of all its part
    files are verified, and damaged ones are made again."""
    repaired: set[str] = field(default_factory=set)  # part files that were found damaged
    ran: set[str] = field(default_factory=set)  # stages that were made


def _make_stages(run: Run, stages: Sequence[Stage], state: _State) -> None:
    for stage in stages:
        key = key_of(stage, run)
        if stage.name not in state.forced | state.suspect:
            if is_up_to_date(stage, run, key):
                run.manifest.confirm(stage.name)
                continue
            if copied := copy_finished(stage, run, key):
                run.manifest.finish(stage.name, copied)
                continue
        say(f"{stage.name} …")
        forgotten = run.manifest.forget(dependents({stage.name}, run.config))
        run.manifest.start(stage.name)
        if stage.name in state.forced:
            drop_receipts(run.folder(stage.name))
        forget_peak()
        started = time.monotonic()
        try:
            with listening(run.manifest.submitted):
                record = stage.make(run.seen_by(stage), key)
        except DamagedError:
            run.manifest.remember(forgotten)  # the repaired input may well be as it was
            raise
        except UserError as error:
            if not (name := stage.selection):
                raise
            forget = f"`--set select.named.{name}=null` makes the run forget it"
            raise UserError(f"select.named.{name}: {error}; {forget}") from error
        if key_of(stage, run) != key:
            drop_receipts(run.folder(stage.name))
            raise UserError(
                f"{stage.name}: a file that it reads changed meanwhile; the same command reads it "
                "from the beginning"
            )
        record.key, record.seconds = key, round(time.monotonic() - started, 3)
        record.peak_memory = max(record.peak_memory, peak_memory())
        run.manifest.finish(stage.name, record)
        state.ran.add(stage.name)
        state.forced.discard(stage.name)
        state.suspect.discard(stage.name)
        before = forgotten.pop(stage.name, None)
        if before and before.digest == record.digest:
            run.manifest.remember(forgotten)  # the same result: their keys are still right


def _plan_repair(error: DamagedError, run: Run, stages: Sequence[str], state: _State) -> None:
    """Make the stage of a damaged part file suspect, if it is of the run and the first time."""
    path = error.path
    stage = next((name for name in stages if path.startswith(f"{run.folder(name)}/")), None)
    if stage is None:
        raise error
    if path in state.repaired:
        raise UserError(
            f"{path}: damaged again after it was made anew; is the disk sound?"
        ) from error
    state.repaired.add(path)
    state.suspect.add(stage)
    say(f"{path}: damaged, made again")


def remove_temporary(folder: str) -> None:
    """Remove what a killed process left under a temporary name (`paraloom.models.files`)."""
    here = remote.local_workdir(folder)
    for name in ("manifest.json", "evaluation.json", *(folder_of(stage.name) for stage in STAGES)):
        places = ("", "rounds/*/", "selections/*/")
        for path in (path for place in places for path in here.glob(f"{place}.{name}.*")):
            if path.is_dir():
                finish_killed(path.with_name(name))
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def remove_local_copies(folder: str) -> None:
    """Remove this machine's files of a run in object storage, except its logs."""
    if storage.is_remote(folder):
        for path in remote.local_workdir(folder).iterdir():
            if path.is_dir() and path.name != "logs":
                shutil.rmtree(path, ignore_errors=True)


def drop_receipts(folder: str) -> None:
    """Remove the receipts of a stage, so that all its shards are made again."""
    for place in (storage.join(folder, RECEIPTS), storage.join(folder, EARLIER)):
        storage.remove_all(storage.join(place, name) for name in storage.names(place))
