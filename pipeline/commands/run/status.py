"""`paraloom status`: how far a run is, read from its folder alone, wherever it runs."""

import fcntl
import time
from collections.abc import Iterable, Sequence
from dataclasses import field
from math import isnan
from pathlib import Path
from typing import Literal

import typer
from pydantic import BaseModel, computed_field
from pydantic.dataclasses import dataclass
from rich.table import Table

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import Receipt, receipts
from paraloom.beam_jobs.runners.launch import connect
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.models.chat.usage import Usage
from paraloom.pipeline.commands.options import (
    GpuHour,
    JsonFile,
    RunFolder,
    beam_options,
    write_json,
)
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.manifest import outdated, started
from paraloom.pipeline.names import PAIR_STAGES, folder_of
from paraloom.pipeline.records import PairsRecord, RunRecord
from paraloom.pipeline.report.summary import rejected_table
from paraloom.pipeline.stage import rejected_rows

State = Literal["finished", "under way", "stopped", "waiting", "outdated"]


@dataclass(slots=True)
class StageStatus:
    """How far a stage is; None stands for what is not known (yet)."""

    name: str
    state: State = "waiting"
    """outdated: of an earlier configuration."""
    shards: tuple[int | None, int | None] = (None, None)  # number done, and number in all
    rows: tuple[int | None, int | None] = (None, None)
    made: int = 0  # rows made in `seconds`
    rejected: dict[str, int] = field(default_factory=dict)  # rows so far, by reason
    seconds: float | None = None
    """Wall-clock time; for a stage under way, since it was started or resumed."""
    last_shard: float | None = None  # seconds since a shard was finished, of a stage under way
    jobs: Sequence[RemoteJob] = ()  # on a service

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rate(self) -> float | None:
        """Rows a second."""
        return self.made / self.seconds if self.made and self.seconds else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def remaining(self) -> float | None:
        """Seconds to the end at this rate."""
        done, total = self.rows
        if self.state != "under way" or not self.rate or done is None or total is None:
            return None
        return (total - done) / self.rate


class Asked(Usage):
    """What a generator's answers took so far, in the shards that are finished."""

    cost: float | None = None  # None without prices or counts of tokens


class Translations(BaseModel):
    """Hours of all translations; a worker process uses all GPUs of its machine."""

    workers: int
    hours: float  # so far
    remaining: float | None  # hours to the end
    price: float  # of an hour


class Status(BaseModel):
    """The JSON form of `paraloom status`."""

    run: str
    state: State  # finished, under way or stopped
    stages: list[StageStatus]
    generators: dict[str, Asked]
    translations: Translations | None  # with --gpu-hour


def command(
    context: typer.Context, run: RunFolder, gpu_hour: GpuHour = None, json: JsonFile = None
) -> None:
    """Print stages, shards, rates, rejected rows and remaining time, from the run folder."""
    connect(beam_options(context), [run])
    out = console()
    stages, asked = status(run), _asked(run)
    out.print(_headline(run, stages), _table(stages), sep="\n", highlight=False)
    for stage in stages:
        for job in stage.jobs[-1:]:
            out.print(f"{stage.name}: {job.address}", highlight=False, soft_wrap=True)
    for name, used in asked.items():
        cost = "" if used.cost is None else f", cost {used.cost:,.4g}"
        tokens = f"{used.tokens_in:,} tokens in, {used.tokens_out:,} out"
        requests = f"{used.requests:,} requests, {used.retries:,} retries"
        out.print(f"{name}: {requests}, {tokens}{cost}", highlight=False)
    if any(stage.rejected for stage in stages):
        out.print(rejected_table({stage.name: stage.rejected for stage in stages}))
    hours = None if gpu_hour is None else _translations(run, stages, gpu_hour)
    if hours:
        out.print(_cost(hours), highlight=False)
    states = {stage.state for stage in stages}
    going: State = "under way" if "under way" in states else "stopped"
    found = Status(
        run=run,
        state="finished" if states <= {"finished", "outdated"} else going,
        stages=stages,
        generators=asked,
        translations=hours,
    )
    write_json(json, found)


def status(folder: str, now: float | None = None) -> list[StageStatus]:
    """How far each stage of the run in `folder` is; `now` is in seconds since the epoch."""
    record = started(folder)
    stale = outdated(record)
    found = []
    for name in dict.fromkeys([*(record.wanted or record.stages), *stale]):
        if record.under_way and name == record.under_way.stage:
            found.append(_under_way(folder, name, record, time.time() if now is None else now))
        elif name in record.stages and not (name in stale and name in record.wanted):
            stage = record.stages[name]
            state: State = "outdated" if name in stale else "finished"
            shown = StageStatus(name, state, seconds=stage.seconds, jobs=stage.jobs)
            if isinstance(stage, PairsRecord):
                shown.shards, shown.rows = (stage.shards,) * 2, (stage.rows_in,) * 2
                shown.made, shown.rejected = stage.rows_in, stage.rejected
            found.append(shown)
        else:
            found.append(StageStatus(name))
    return found


def busy_seconds(receipts: Iterable[Receipt]) -> dict[str, float]:
    """The seconds that each worker was busy; its threads' overlapping work counts once."""
    busy: dict[str, float] = {}
    until: dict[str, float] = {}
    for receipt in sorted(receipts, key=lambda receipt: receipt.ended - receipt.seconds):
        name, end = receipt.worker, receipt.ended
        before = until.get(name, float("-inf"))
        new = max(end - max(end - receipt.seconds, before), 0)
        busy[name], until[name] = busy.get(name, 0.0) + new, max(before, end)
    return busy


def duration(seconds: float | None) -> str:
    """A time span in its two largest units.

    >>> [duration(s) for s in (59.6, 754, 7384, 190000)]
    ['1 min 00 s', '12 min 34 s', '2 h 03 min', '2 d 04 h']
    """
    if seconds is None:
        return ""
    whole = round(seconds)
    for unit, part, size in (("d", "h", 3600), ("h", "min", 60), ("min", "s", 1)):
        units, rest = divmod(whole // size, 24 if unit == "d" else 60)
        if units:
            return f"{units} {unit} {rest:02} {part}"
    return f"{whole} s"


def _is_running(folder: str) -> bool | None:
    """Whether a process on this machine holds the run's lock (`manifest.locked`)."""
    if storage.is_remote(folder):
        return None
    try:
        with Path(folder, ".lock").open() as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock
        return False
    return False


def _under_way(folder: str, name: str, record: RunRecord, now: float) -> StageStatus:
    """The stage under way; without a process at work, as it was when its last shard ended."""
    assert record.under_way
    start, stopped = record.under_way.since, _is_running(folder) is False
    done = receipts(storage.join(folder, folder_of(name))) if _has_pairs(name) else []
    last = max((receipt.ended for receipt in done), default=0.0)
    found = StageStatus(
        name,
        "stopped" if stopped else "under way",
        seconds=max((last if stopped else now) - start, 0),  # the clock may have been set back
        last_shard=max(now - last, 0) if last >= start else None,
        jobs=record.under_way.jobs,
    )
    if name == "ingest":  # a receipt covers several part files
        parts = [n for n in storage.names(storage.join(folder, name)) if n.endswith(".parquet")]
        found.shards = (len(parts), None)
    elif _has_pairs(name):
        shards, rows = _to_make(name, record)
        found.shards, found.rows = (
            (len(done), shards),
            (sum(receipt.rows_in for receipt in done), rows),
        )
        found.made = sum(receipt.rows_in for receipt in done if receipt.ended >= start)
        found.rejected = rejected_rows(done)
    return found


def _has_pairs(name: str) -> bool:
    """Whether a stage, of any round (`rounds/2/score`), writes pairs."""
    return name.rsplit("/", 1)[-1] in PAIR_STAGES


def _to_make(name: str, record: RunRecord) -> tuple[int | None, int | None]:
    """The shards and rows that a stage will have made, if the stage that it reads is finished."""
    prefix, _, base = name.rpartition("/")
    stages = [n for n in PAIR_STAGES if n == base or n in record.planned]
    before = stages[stages.index(base) - 1]
    read = record.find(PairsRecord, f"{prefix}/{before}") or record.find(PairsRecord, before)
    if read is None:
        return None, None
    if base == "generate":  # its candidates of every pair, and those that there are
        pairs = record.find(PairsRecord, "pivot") or record.find(PairsRecord, "ingest") or read
        asked = sum(of.get("n", 1) for of in record.config.generators or () if "model" in of)
        made = read.rows_out if before == "back_translate" else 0
        return pairs.shards, pairs.rows_out * asked + made
    candidates = record.config.nmt.candidates if name == "back_translate" else 1
    return read.shards, read.rows_out * candidates


def _headline(folder: str, stages: Sequence[StageStatus]) -> str:
    found = {stage.state: stage for stage in stages}
    if stage := found.get("stopped"):
        return f"{folder}: stopped in {stage.name}; the same command resumes it"
    if stage := found.get("under way"):
        ago = f"last shard finished {duration(stage.last_shard)} ago"
        if stage.last_shard is None:
            ago = "no shard finished yet" if _has_pairs(stage.name) else ""
        return f"{folder}: {stage.name} for {duration(stage.seconds)}, {ago}".rstrip(", ")
    waits = "waiting" in found
    return f"{folder}: {'stopped; the same command resumes it' if waits else 'finished'}"


def _table(stages: Sequence[StageStatus]) -> Table:
    numbers = ("shards", "rows", "rejected", "rows/s", "time", "remaining")
    table = number_table("", "stage", "", numbers=numbers)
    for stage in stages:
        table.add_row(
            stage.name,
            stage.state,
            _progress(*stage.shards),
            _progress(*stage.rows),
            "" if stage.rows[0] is None else f"{sum(stage.rejected.values()):,}",
            "" if stage.rate is None else f"{stage.rate:,.0f}",
            duration(stage.seconds),
            duration(stage.remaining),
        )
    return table


def _progress(done: int | None, total: int | None) -> str:
    if done is None:
        return ""
    return f"{done:,}" if total in (None, done) else f"{done:,} of {total:,}"


def _asked(folder: str) -> dict[str, Asked]:
    """What the answers of each generator took."""
    configured = {of["name"]: of for of in started(folder).config.generators or ()}
    used = [receipt.numbers.generators for receipt in receipts(storage.join(folder, "generate"))]
    found = {}
    for name in dict.fromkeys(name for one in used for name in one):
        total = sum((one[name] for one in used if name in one), Usage())
        cost = total.at_prices(configured.get(name, {}).get("prices"))
        found[name] = Asked(**total.model_dump(), cost=cost)
    return found


def _translations(folder: str, stages: Sequence[StageStatus], price: float) -> Translations:
    """Hours of all translations, so far and to the end."""
    workers, spent, more = set[str](), 0.0, 0.0
    for stage in stages:
        if stage.name in ("pivot", "back_translate"):
            busy = busy_seconds(receipts(storage.join(folder, folder_of(stage.name))))
            hours = sum(busy.values()) / 3600
            done, total = stage.rows
            more += hours * (total - done) / done if done and total else float("nan")
            workers |= busy.keys()
            spent += hours
    known = None if isnan(more) else more
    return Translations(workers=len(workers), hours=spent, remaining=known, price=price)


def _cost(found: Translations) -> str:
    if not found.workers:
        return "back-translation: no shard finished yet, so nothing to count"
    spent, price = found.hours, found.price
    line = (
        f"back-translation: {found.workers} workers, {spent:,.2f} hours so far "
        f"({spent * price:,.2f} at {price:,.2f} an hour)"
    )
    if more := found.remaining:
        line += f", {more:,.2f} more to the end ({(spent + more) * price:,.2f} in all)"
    return line
