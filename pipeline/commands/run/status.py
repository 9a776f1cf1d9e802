"""`paraloom status`: how far a run is, read from its folder alone, wherever it runs."""

import fcntl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Group
from rich.table import Table

from paraloom.beam_jobs.back_translate import distinct_folder
from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import Receipt, receipts
from paraloom.beam_jobs.runners.launch import connect
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import GpuHour, RunFolder, beam_options
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import PairsRecord, RunRecord, StageRecord
from paraloom.pipeline.report.final_view import outdated
from paraloom.pipeline.report.summary import rejected_table
from paraloom.pipeline.stage import PAIR_STAGES, rejected_rows

_RECENT = 100  # shards that the rate is computed from, because workers come and go


@dataclass(slots=True, kw_only=True)
class StageStatus:
    """How far a stage is; None stands for what is not known (yet)."""

    name: str
    state: str
    """finished, under way, stopped, waiting, or outdated: of an earlier configuration."""
    shards: tuple[int | None, int | None] = (None, None)  # number done, and number in all
    rows: tuple[int | None, int | None] = (None, None)
    rejected: dict[str, int] = field(default_factory=dict)  # rows so far, by reason
    seconds: float | None = None
    """Wall-clock time; for a stage under way, since it was started or resumed."""
    rate: float | None = None  # rows per second
    remaining: float | None = None  # seconds to the end
    jobs: Sequence[RemoteJob] = ()  # on a service


class TranslationHours(NamedTuple):
    """Worker hours of translation; a worker process uses all GPUs of its machine."""

    workers: int  # processes that have finished a shard
    spent: float  # hours that all workers together have translated
    remaining: float | None  # estimate for the rows left; None if their number is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How far a run is."""

    stages: tuple[StageStatus, ...]
    is_running: bool | None  # on this machine; None for an object store
    last_shard_age: float | None = None  # seconds since a shard of the stage under way was finished


def command(context: typer.Context, run: RunFolder, gpu_hour: GpuHour = None) -> None:
    """Print stages, shards, rates, rejected rows and remaining time, from the run folder."""
    connect(beam_options(context), [run])
    out = console()
    found = status(run)
    out.print(Group(_headline(run, found), _stage_table(found.stages)), highlight=False)
    for stage in found.stages:
        for job in stage.jobs[-1:]:
            out.print(f"{stage.name}: {job.address}", highlight=False, soft_wrap=True)
    if any(stage.rejected for stage in found.stages):
        out.print(rejected_table({stage.name: stage.rejected for stage in found.stages}))
    if gpu_hour is not None:
        out.print(_cost(translation_hours(run), gpu_hour), highlight=False)


def status(folder: str, now: float | None = None) -> Status:
    """How far the run in `folder` is.

    Args:
        now: seconds since the epoch.
    """
    now = time.time() if now is None else now
    record, is_running = _record(folder), _is_running(folder)
    found: list[StageStatus] = []
    last_shard_age = None
    stale = outdated(record)
    for name in dict.fromkeys([*(record.wanted or record.stages), *stale]):
        if record.under_way and name == record.under_way.stage:
            start = record.under_way.since
            done = _work_done(folder, name, record) if _has_pairs(name) else []
            last = max((receipt.ended for receipt in done), default=0.0)
            last_shard_age = max(now - last, 0.0) if last >= start else None
            # The clock may have been set back since.
            end = max(last, start) if is_running is False else max(now, start)
            current = _current(folder, name, record, done, start, end)
            if is_running is False:
                current.state, current.remaining = "stopped", None
            current.jobs = record.under_way.jobs
            found.append(current)
        elif name in record.stages and not (name in stale and name in record.wanted):
            state = "outdated" if name in stale else "finished"
            found.append(_finished(name, state, record.stages[name]))
        else:
            found.append(StageStatus(name=name, state="waiting"))
    return Status(stages=tuple(found), is_running=is_running, last_shard_age=last_shard_age)


def translation_hours(folder: str) -> TranslationHours | None:
    """Worker hours of all translations; None before the first shard is finished."""
    record = _record(folder)
    workers: set[str] = set()
    spent, remaining = 0.0, []
    for name in ("pivot", "back_translate"):
        if name != "back_translate" and name not in record.planned:
            continue
        finished = _work_done(folder, name, record)
        busy = busy_seconds(finished)
        workers |= busy.keys()
        hours, done = sum(busy.values()) / 3600, sum(map(_rows, finished))
        rows = _rows_to_make(name, record)
        spent += hours
        remaining.append(hours * (rows - done) / done if rows is not None and done else None)
    if not workers:
        return None
    whole = None if None in remaining else sum(filter(None, remaining))
    return TranslationHours(workers=len(workers), spent=spent, remaining=whole)


def busy_seconds(receipts: Iterable[Receipt]) -> dict[str, float]:
    """The seconds that each worker was busy; its threads' overlapping work counts once."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for receipt in receipts:
        span = (receipt.ended - receipt.seconds, receipt.ended)
        spans.setdefault(receipt.worker, []).append(span)
    busy = {}
    for worker, of in spans.items():
        total, until = 0.0, float("-inf")
        for start, end in sorted(of):
            total += max(end - max(start, until), 0)
            until = max(until, end)
        busy[worker] = total
    return busy


def duration(seconds: float | None) -> str:
    """A time span in its two largest units.

    >>> [duration(s) for s in (12.3, 754, 7384, 190000)]
    ['12 s', '12 min 34 s', '2 h 03 min', '2 d 04 h']
    """
    if seconds is None:
        return ""
    whole = round(seconds)
    for unit, part, size in (("d", "h", 3600), ("h", "min", 60), ("min", "s", 1)):
        units, rest = divmod(whole // size, 24 if unit == "d" else 60)
        if units:
            return f"{units} {unit} {rest:02} {part}"
    return f"{whole} s"


def _record(folder: str) -> RunRecord:
    record = Manifest(folder).record
    if not record.started:
        raise UserError(f"{folder}: no run here: it has no manifest.json")
    return record


def _is_running(folder: str) -> bool | None:
    """Whether a process on this machine holds the run's lock (`manifest.locked`)."""
    if storage.is_remote(folder):
        return None
    try:
        with Path(folder, ".lock").open() as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _current(
    folder: str, name: str, record: RunRecord, done: Sequence[Receipt], start: float, end: float
) -> StageStatus:
    """The stage under way, which began (again) at `start`, seen at `end`."""
    found = StageStatus(name=name, state="under way", seconds=end - start)
    if not _has_pairs(name):
        return found
    if name == "ingest":  # a receipt covers several part files
        parts = [n for n in storage.names(storage.join(folder, name)) if n.endswith(".parquet")]
        found.shards = (len(parts), None)
        return found
    before = _record_before(name, record)
    shards, rows = before.shards if before else None, _rows_to_make(name, record)
    rows_done = sum(map(_rows, done))
    found.shards, found.rows = (len(done), shards), (rows_done, rows)
    found.rejected = rejected_rows(done)
    found.rate = _rate(done, start, end)
    if found.rate and rows is not None:
        found.remaining = (rows - rows_done) / found.rate
    return found


def _work_done(folder: str, name: str, record: RunRecord) -> list[Receipt]:
    """The receipts of the work that takes a stage's time: of translations, if those are shared."""
    path = storage.join(folder, name)
    config = record.config.input
    if name in ("pivot", "back_translate") and config and config.unique == "source":
        path = distinct_folder(path)
    return receipts(path)


def _rows(receipt: Receipt) -> int:
    """The rows of its shard; it translates fewer if it shares translations."""
    return int((receipt.numbers.model_extra or {}).get("shard_rows", receipt.rows_in))


def _has_pairs(name: str) -> bool:
    """Whether a stage, of any round (`rounds/2/score`), writes pairs."""
    return name.rsplit("/", 1)[-1] in PAIR_STAGES


def _record_before(name: str, record: RunRecord) -> PairsRecord | None:
    """The record of the stage that a stage of pairs reads: of the same round, if there is one."""
    prefix, _, base = name.rpartition("/")
    stages = [n for n in PAIR_STAGES if n != "pivot" or n in (base, *record.planned)]
    before = stages[stages.index(base) - 1]
    return record.find(PairsRecord, f"{prefix}/{before}") or record.find(PairsRecord, before)


def _rows_to_make(name: str, record: RunRecord) -> int | None:
    """The rows that a stage will have made or rejected; None if that is not known yet."""
    before = _record_before(name, record)
    if before is None:
        return None
    return before.rows_out * (record.config.nmt.candidates if name == "back_translate" else 1)


def _rate(finished: Sequence[Receipt], start: float, end: float) -> float | None:
    """Rows per second of the last shards that were finished since `start`."""
    ours = sorted((r for r in finished if r.ended >= start), key=lambda receipt: receipt.ended)
    if not ours:
        return None
    since = ours[-_RECENT - 1].ended if len(ours) > _RECENT else start
    if end <= since:  # the clock was set back
        return None
    return sum(map(_rows, ours[-_RECENT:])) / max(end - since, 1e-3)


def _finished(name: str, state: str, record: StageRecord) -> StageStatus:
    found = StageStatus(name=name, state=state, seconds=record.seconds, jobs=record.jobs)
    if isinstance(record, PairsRecord):
        found.shards, found.rows = (record.shards,) * 2, (record.rows_in,) * 2
        found.rejected = record.rejected
        found.rate = record.rows_in / record.seconds if record.seconds else None
    return found


def _headline(folder: str, found: Status) -> str:
    current = [stage for stage in found.stages if stage.state in ("under way", "stopped")]
    if not current:
        if any(stage.state == "waiting" for stage in found.stages):
            return f"{folder}: stopped; the same command resumes it"
        return f"{folder}: finished"
    (stage,) = current
    if stage.state == "stopped":
        return f"{folder}: stopped in {stage.name}; the same command resumes it"
    line = f"{folder}: {stage.name} for {duration(stage.seconds)}"
    if found.last_shard_age is not None:
        line += f", last shard finished {duration(found.last_shard_age)} ago"
    elif _has_pairs(stage.name):
        line += ", no shard finished yet"
    return line


def _stage_table(stages: Sequence[StageStatus]) -> Table:
    numbers = ("shards", "rows", "rejected", "rows/s", "time", "remaining")
    table = number_table("", "stage", "", numbers=numbers)
    for stage in stages:
        table.add_row(
            stage.name,
            stage.state,
            _progress(stage.shards),
            _progress(stage.rows),
            "" if stage.rows[0] is None else f"{sum(stage.rejected.values()):,}",
            "" if stage.rate is None else f"{stage.rate:,.0f}",
            duration(stage.seconds),
            duration(stage.remaining),
        )
    return table


def _progress(done_of_total: tuple[int | None, int | None]) -> str:
    done, total = done_of_total
    if done is None:
        return ""
    return f"{done:,}" if total in (None, done) else f"{done:,} of {total:,}"


def _cost(hours: TranslationHours | None, gpu_hour: float) -> str:
    if hours is None:
        return "back-translation: no shard finished yet, so nothing to count"
    line = (
        f"back-translation: {hours.workers} workers, {hours.spent:,.2f} hours so far "
        f"({hours.spent * gpu_hour:,.2f} at {gpu_hour:,.2f} an hour)"
    )
    if hours.remaining:
        whole = hours.spent + hours.remaining
        line += f", {hours.remaining:,.2f} more to the end ({whole * gpu_hour:,.2f} in all)"
    return line
