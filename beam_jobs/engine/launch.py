"""Run a Beam job, report its progress and errors, and return its receipts."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import apache_beam as beam
from apache_beam import pipeline as pipelines
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import crash_recovery
from paraloom.beam_jobs.engine import shards as shard_files
from paraloom.beam_jobs.engine.options import DATAFLOW, local_workers, parse_options, runner_of
from paraloom.beam_jobs.engine.rejections import Limit, RejectionWatch
from paraloom.beam_jobs.engine.shards import Receipt, remove_orphans
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.runners.local.runner import (
    ends_when_interrupted,
    local_runner,
    retry_on_worker_death,
)
from paraloom.beam_jobs.runners.loopback import loopback_servers
from paraloom.beam_jobs.runners.remote_jobs import User, name_job, user_error
from paraloom.beam_jobs.storage import remote
from paraloom.models.errors import UserError
from paraloom.models.printing import Lossy
from paraloom.models.progress import Meter, meter

NAMESPACE = "paraloom"  # namespace of the jobs' Beam counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The receipts, in the order of the units, and Beam's counters."""

    receipts: tuple[Receipt, ...]
    metrics: dict[str, int] = field(default_factory=dict)


class WorkUnit(Protocol):
    """Interface of a unit of work, for `launch` and `UnitDoFn`."""

    @property
    def name(self) -> str:
        """Name of the unit's receipt."""

    @property
    def key(self) -> str:
        """Digest of everything that the unit's output depends on."""

    @property
    def rows(self) -> int | None:
        """Number of rows to read, if it is known in advance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A pipeline to run, and the functions that report its progress."""

    name: str
    output: str
    build: Callable[[beam.Pipeline], Any]
    processes: int
    done: Callable[[], int]  # returns the number of rows that are done
    total: int | None
    finished: Callable[[], int] = lambda: 0  # returns the number of rows in finished units
    died: Callable[[], str] = lambda: ""  # called when a worker dies; returns the units in progress
    unit: str = "rows"  # what `done` counts
    label: str | None = None  # digest of the work, by which other launchers find the job


def beam_options(arguments: Sequence[str], *, processes: int | None = None) -> PipelineOptions:
    """Parse Beam's options. If they name no runner, use at most `processes` local workers."""
    options = parse_options(arguments)
    standard = options.view_as(StandardOptions)
    if standard.runner:
        return options
    # Without a named runner, Beam tries to download another local runner.
    standard.runner = "FnApiRunner"
    workers = local_workers(arguments)
    direct = options.view_as(DirectOptions)
    direct.direct_num_workers = min(workers, processes or workers)
    direct.direct_running_mode = "in_memory"  # `default_runner` starts the workers
    return options


def launch(
    name: str,
    units: Sequence[WorkUnit],
    transform: beam.PTransform,
    output: str,
    arguments: Sequence[str],
    *,
    processes: int | None = None,
    done: Callable[[], int] | None = None,
    limit: Limit | None = None,
) -> Result:
    """Run a job that writes a receipt and part files for each unit, and return the receipts.

    Units that already have a valid receipt are not processed again.

    Args:
        transform: transform from units to receipts.
        output: folder of the files and receipts.
        processes: largest number of worker processes, if the user did not choose a runner.
        done: returns the number of finished rows; None: count the rows of units with receipts.
        limit: largest share of rows that the job may reject; None: unlimited.

    Raises:
        UserError: a worker's first error that the user can fix, or too many rejected rows.
        RuntimeError: a unit has no valid receipt.
    """
    keys = {unit.name: unit.key for unit in units}
    before = shard_files.receipts(output)
    shard_files.expand(output)
    shard_files.outdate(output, [r for r in before if keys.get(r.name) != r.key])
    # Keep the hashes in a store, where an earlier launcher's job may still read them.
    if not storage.is_remote(output):
        storage.clear(storage.join(output, shard_files.HASHES))
    rows = {unit.name: unit.rows for unit in units}
    known = [n for n in rows.values() if n is not None]

    def count() -> int:
        if done:
            return done()
        names = storage.names(storage.join(output, shard_files.RECEIPTS))
        return sum(rows.get(name.removesuffix(".json")) or 0 for name in names)

    def look() -> int:
        watch.look()
        return count() + _under_way(output)

    work = Work(
        name=name,
        output=output,
        build=lambda root: root | beam.Create(list(units)) | beam.Reshuffle() | transform,
        processes=min(processes or len(units), len(units)),
        done=look,
        total=sum(known) if len(known) == len(rows) else None,
        finished=count,
        died=lambda: crash_recovery.note_death(output),
        unit="candidates" if any(getattr(u, "candidates", 1) > 1 for u in units) else "rows",
        label=shard_files.content_key([unit.key for unit in units])[:16],
    )
    watch = RejectionWatch(name, output, limit)
    try:
        metrics = watch_pipeline(work, arguments)
    finally:
        watch.end()
    written = {receipt.name: receipt for receipt in shard_files.receipts(output)}
    for unit in units:
        found = written.get(unit.name)
        if found is None or found.key != unit.key:
            raise RuntimeError(f"{name}: no receipt for {unit.name} in {output}")
        if unit.rows is not None and found.rows_in != unit.rows:
            raise RuntimeError(
                f"{name}: {unit.name} has {unit.rows} rows, but {found.rows_in} were read"
            )
    receipts = tuple(written[unit.name] for unit in units)
    remove_orphans(output, receipts)
    watch.check_all(receipts)
    shard_files.compact(output, receipts)
    return Result(receipts=receipts, metrics=metrics)


def _under_way(output: str) -> int:
    folder = storage.join(output, shard_files.UNDER_WAY)
    names = [] if storage.is_remote(output) else storage.names(folder)
    paths = {name: shard_files.receipt_path(output, name) for name in names}
    told = [name for name, receipt in paths.items() if not storage.exists(receipt)]
    found = (storage.read_bytes(storage.join(folder, name)) for name in told)
    return sum(int(rows) for rows in found if rows.isdigit())  # other files are damaged


def watch_pipeline(work: Work, arguments: Sequence[str]) -> dict[str, int]:
    """Run a pipeline, show its progress, and write a log. Run it again if a worker dies."""
    options = beam_options(arguments, processes=max(work.processes, 1))
    name_job(options, work.name, work.output)
    if work.label:
        dataflow.label(options, work.label)
    with (
        redirect_stderr(work.output) as terminal,
        nullcontext() if runner_of(arguments) else ends_when_interrupted(terminal),
        meter(work.name, total=work.total, unit=work.unit, stream=terminal) as progress,
        report_progress(work.done, progress, work.output),
    ):
        dataflow.prepare(options, work.output)
        user = User(options, progress, terminal)

        def attempt() -> dict[str, int]:
            return run_pipeline(work.build, options, default_runner(arguments), user)

        return retry_on_worker_death(attempt, _log(work.output), work.finished, work.died)


def run_pipeline(
    build: Callable[[beam.Pipeline], Any],
    options: PipelineOptions,
    runner: FnApiRunner | None = None,
    user: User | None = None,
) -> dict[str, int]:
    """Build and run a Beam pipeline; return its counters.

    `runner` overrides the runner in the options. After Ctrl-C, `user` decides whether to cancel.
    """
    user = user or User(options)
    try:
        with _flink_checks(options), loopback_servers(), _plain_labels():
            try:
                pipeline = beam.Pipeline(runner=runner, options=options)
            except (ValueError, ImportError) as error:  # unknown or not installed runner
                raise UserError(f"Beam options: {' '.join(str(error).split())}") from error
            build(pipeline)
            on_dataflow = options.view_as(StandardOptions).runner == DATAFLOW
            result = dataflow.submit(pipeline, options, user) if on_dataflow else pipeline.run()
            try:
                dataflow.wait(result, options) if on_dataflow else result.wait_until_finish()
            except KeyboardInterrupt:
                if user.cancels():
                    with suppress(Exception):
                        result.cancel()
                raise
            query = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
    except Exception as error:
        # `user_error` looks for the text "UserError: …", as in a runner's message.
        known = isinstance(error, UserError)
        if found := user_error(f"{type(error).__name__}: {error}" if known else str(error)):
            raise found from error
        raise
    counters: Counter[str] = Counter()
    for counter in query["counters"]:
        counters[counter.key.metric.name] += counter.result
    return dict(sorted(counters.items()))


@contextmanager
def _plain_labels() -> Iterator[None]:
    """Prevent Beam from importing `apache_beam.dataframe`, which fails with pandas 3."""
    original = pipelines.alter_label_if_ipython
    pipelines.alter_label_if_ipython = lambda transform, pvalueish: None
    try:
        yield
    finally:
        pipelines.alter_label_if_ipython = original


def _flink_checks(options: PipelineOptions) -> AbstractContextManager[None]:
    if options.view_as(StandardOptions).runner != "FlinkRunner":
        return nullcontext()
    from paraloom.beam_jobs.runners.flink.submit import ready

    return ready(options)


def default_runner(arguments: Sequence[str]) -> FnApiRunner | None:
    """Return a runner with local workers, or None if a runner is named or `local_workers` is 1.

    With this runner, a job that needs only one process runs in a worker, too, so that the job's
    memory is freed when the worker ends.
    """
    here = local_workers(arguments) < 2
    return None if runner_of(arguments) or here else local_runner(parse_options(arguments))


@contextmanager
def redirect_stderr(output: str) -> Iterator[Any]:
    """Redirect stderr to a log, for this process and its workers. Yield a stream to the terminal.

    The log is in `logs/` in the `local_workdir` of the run.
    """
    log = _log(output)
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as stream:
            os.dup2(stream.fileno(), 2)
        with closing(Lossy(os.fdopen(os.dup(saved), "w"))) as terminal:
            yield terminal
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)


def _log(output: str) -> Path:
    parent, _, name = output.rstrip("/").rpartition("/")
    return remote.local_workdir(parent) / "logs" / f"{name}.log"


@contextmanager
def report_progress(done: Callable[[], int], progress: Meter, output: str) -> Iterator[None]:
    """Call `done` regularly while the block runs, and report its result as progress."""
    stop = threading.Event()
    seconds = 10.0 if storage.is_remote(output) else 0.5  # a remote call sends a request

    def watch() -> None:
        while not stop.wait(seconds):
            with suppress(UserError, OSError):  # the job itself reports such errors
                progress.set(done())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
        progress.set(done())
    finally:
        stop.set()
        watcher.join()
