"""Runs the stages of a run that are not up to date."""

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import options
from paraloom.beam_jobs.engine.shards import EARLIER, RECEIPTS, DamagedError
from paraloom.beam_jobs.runners.local.fork_server import fork_server
from paraloom.beam_jobs.runners.remote_jobs import listening
from paraloom.beam_jobs.storage import remote
from paraloom.models.errors import UserError, reading
from paraloom.models.files import STAGE_RECORD, finish_killed, looked_up
from paraloom.models.hub import is_hub_name
from paraloom.models.memory import forget_peak, import_fast, peak_memory
from paraloom.models.options import InputPath
from paraloom.models.printing import say
from paraloom.pipeline.commands.summary import show_summary
from paraloom.pipeline.config import Config
from paraloom.pipeline.run import notices
from paraloom.pipeline.run.folder import HEADER, check_selection, locked, recorded, with_selections
from paraloom.pipeline.run.journal import Journal
from paraloom.pipeline.run.pages import write_pages
from paraloom.pipeline.run.plan import PlannedStage, closure, copy_finished, outdated, plan
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import PAIR_STAGES, TABLE, folder_of
from paraloom.pipeline.stages.ingest import check_replaces


def run_stages(
    config: Config,
    targets: Sequence[str],
    arguments: Sequence[str] = (),
    *,
    force: bool = False,
    selection: str = "",
    base: Run | None = None,
) -> Run:
    """Bring stages and their dependencies up to date, and return the run.

    Args:
        targets: names of stages. If `selection` is "", `select` includes all named selections.
        arguments: options of Beam.
        force: run the targets even if they are up to date.
        selection: the named selection that the targets belong to, or "" for the run itself.
        base: the run whose trained models are used, if the new run reads a sample of the input.
    """
    options.connect(arguments, remote_paths(config))
    config = with_selections(config)
    place = check_selection(config.run, config.select.selections, selection)
    run = Run(config, arguments, base)
    wanted = [run.children[place].path(name) if place else name for name in targets]
    if "select" in wanted:
        wanted += [f"selections/{name}/select" for name in config.select.selections]
    names = [step.path for step in closure(wanted, plan(run))]
    if set(names) & set(PAIR_STAGES):
        check_visible(config, arguments)
    here = localised(config)
    steps = plan(Run.open(here, arguments, base))
    new = outdated(steps) | {s.path for s in steps if force or s.stage.name not in s.run.records}
    check(here, [step for step in closure(wanted, steps) if step.path in new])
    if base is None:  # commands that run on a sample print notices of their own
        notices.notify(notices.of_configuration(here, names))
    if not names:
        raise UserError(f"this configuration has no stage {' or '.join(targets)}")
    with locked(config.run):
        remove_temporary(config.run)
        run = Run.open(here, arguments, base)
        steps = plan(run)
        for step in steps:
            if step.path == "ingest" and step.path in names and not force:
                check_replaces(run, step.key())
        journal = Journal(run)
        journal.begin(config, [step.path for step in steps], names, outdated(steps))
        needed = closure(wanted, steps)
        state = _State({s.path for s in needed if force and s.stage.name in targets})
        while True:
            try:
                _make_stages(journal, needed, state)
                write_pages(config.run, recorded(journal.record))
                break
            except DamagedError as error:
                _plan_repair(error, needed, state)
            except UserError:
                if journal.record.stages:
                    with suppress(UserError, OSError):  # only the first error is reported
                        write_pages(config.run, recorded(journal.record))
                raise
        remove_local_copies(config.run)
        show_summary(config.run, recorded(journal.record), state.ran)
        return run


def localised(config: Config) -> Config:
    """Copy remote files that libraries read. Return the configuration with the copies' paths."""

    def local(key: str, path: str, mark: InputPath) -> str:
        if not mark.copied or not storage.is_remote(path):
            return path
        with reading(key):
            return remote.localise(path)

    return config.map_files(local)


def check_visible(config: Config, arguments: Sequence[str]) -> None:
    """If jobs run on Dataflow, check that workers can read the run and its inputs."""
    if not options.only_workers(arguments) and options.runner_of(arguments) == options.DATAFLOW:
        hub = config.files(lambda mark: mark.hub)
        read = config.files(lambda mark: not mark.copied)
        for key, path in {"run": config.run, **read}.items():
            if not (key in hub and is_hub_name(path)):
                options.check_visible(key, path)


def remote_paths(config: Config) -> list[str]:
    """List the run folder and the input files that are in object storage."""
    return [path for path in (config.run, *config.files().values()) if storage.is_remote(path)]


def check(config: Config, steps: Sequence[PlannedStage]) -> None:
    """Check, before any stage runs, that the input files exist and that all stages can run."""
    names, packages = config.files(lambda mark: mark.hub), config.files(lambda mark: mark.package)
    for key, path in config.files(lambda mark: mark.checked).items():
        # Only the first file of several checkpoints is checked.
        first = path.partition(".pt:")[0] + ".pt" * (".pt:" in path)
        if key in packages and "/" not in path:
            continue
        if not remote.exists(first) and not (key in names and is_hub_name(path)):
            is_name = key in names and not Path(path).is_absolute() and not storage.is_remote(path)
            on_hub = "; a model of the Hub is named owner/name or owner/name@revision"
            raise UserError(
                f"{key}: {path} does not exist{looked_up(path)}{on_hub if is_name else ''}"
            )
    checks = {}  # each check runs once, since rounds share the run's configuration
    for step in steps:
        named = step.run.place.startswith("selections/")
        own, place = (step.run.config, step.run.place) if named else (config, "")
        checks[step.stage.check, place] = own
    for (check_stage, place), of in checks.items():
        with _errors_of(of, place):
            check_stage(of)


@contextmanager
def _errors_of(config: Config, place: str) -> Iterator[None]:
    """In errors of a named selection, replace `select.KEY` by `select.named.NAME.KEY` for its own
    keys, and say how to remove the selection."""
    try:
        yield
    except UserError as error:
        kind, _, name = place.partition("/")
        if kind != "selections" or isinstance(error, DamagedError):
            raise
        named, own = f"select.named.{name}", config.select.selections[name].model_fields_set

        def key(found: re.Match[str]) -> str:
            return f"{named}.{found[1]}" if found[1] in own else found[0]

        notes = [re.sub(r"\bselect\.(\w+)", key, of) for of in getattr(error, "__notes__", ())]
        text = re.sub(r"\bselect\.(\w+)", key, str(error))
        start = "" if any(of.startswith(named) for of in (*notes, text)) else f"{named}: "
        forget = f"`--set {named}=null` removes the selection from the run"
        error.__notes__, error.args = notes, (f"{start}{text}; {forget}",)
        raise


@dataclass(slots=True)
class _State:
    forced: set[str]  # stages to run without reusing earlier results
    suspect: set[str] = field(default_factory=set)
    """Stages with a damaged part file. They run again, and replace only damaged part files."""
    repaired: set[str] = field(default_factory=set)  # part files that were found damaged
    ran: set[str] = field(default_factory=set)


def _make_stages(journal: Journal, steps: Sequence[PlannedStage], state: _State) -> None:
    for step in steps:
        run, stage, path = step.run, step.stage, step.path
        key = step.key()
        if path not in state.forced | state.suspect:
            if step.is_up_to_date(key):
                journal.confirm(step)
                continue
            if copied := copy_finished(stage, run, key):
                journal.finish(step, copied)
                continue
        if stage.name in PAIR_STAGES:
            workers = options.threads_here(run.arguments) or 1
            if workers > 1:  # the fork server imports modules in parallel with this process
                fork_server.prepare()
            import_fast("paraloom.beam_jobs.engine.launch")
        say(f"{path} …")
        journal.start(step)
        run.forced = path in state.forced
        if run.forced:
            drop_receipts(run.folder(stage.name))
        forget_peak()
        started = time.monotonic()
        with _errors_of(run.config, run.place), listening(journal.submitted):
            record = stage.make(run, key)
        if step.key() != key:
            drop_receipts(run.folder(stage.name))
            raise UserError(
                f"{path}: an input of this stage changed while the stage ran; run the command again"
            )
        record.key, record.seconds = key, round(time.monotonic() - started, 3)
        record.peak_memory = max(record.peak_memory, peak_memory())
        journal.finish(step, record)
        state.ran.add(path)
        state.forced.discard(path)
        state.suspect.discard(path)


def _plan_repair(error: DamagedError, steps: Sequence[PlannedStage], state: _State) -> None:
    """Let the stage of a damaged part file run again once. Raise an error the second time."""
    path = error.path
    folders = {step.path: step.run.folder(step.stage.name) for step in steps}
    stage = next((n for n, folder in folders.items() if path.startswith(f"{folder}/")), None)
    if stage is None:
        raise error
    if path in state.repaired:
        raise UserError(f"{path}: damaged for the second time; check the disk") from error
    state.repaired.add(path)
    state.suspect.add(stage)
    say(f"{path}: damaged; it is made again")


def remove_temporary(folder: str) -> None:
    """Remove temporary files that a killed process left in a run folder."""
    here, folders = remote.local_workdir(folder), [*map(folder_of, TABLE)]
    files = ("manifest.json", HEADER, "evaluation.json")
    names = (*files, *folders, *(f"{stage}/{STAGE_RECORD}" for stage in folders))
    for place, name in product(("", "rounds/*/", "selections/*/"), names):
        parent, _, own = f"{place}{name}".rpartition("/")
        for path in here.glob(f"{parent}/.{own}.*" if parent else f".{own}.*"):
            if path.is_dir():
                finish_killed(path.with_name(own))
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def remove_local_copies(folder: str) -> None:
    """If a run is in object storage, remove its local folders except `logs`."""
    if storage.is_remote(folder):
        for path in remote.local_workdir(folder).iterdir():
            if path.is_dir() and path.name != "logs":
                shutil.rmtree(path, ignore_errors=True)


def drop_receipts(folder: str) -> None:
    """Remove the receipts in a stage's folder, so that the stage makes all its shards again."""
    for kind in (RECEIPTS, EARLIER):
        storage.clear(storage.join(folder, kind))
