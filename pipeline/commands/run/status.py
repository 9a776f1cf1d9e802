"""`paraloom status`: shows the progress of a run. The command reads only the run folder."""

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import receipts
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.beam_jobs.transforms.answer_files import GenerateMeasurements
from paraloom.models.chat.answers import Usage
from paraloom.models.files import LOCKS
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, RunFolder, write_json
from paraloom.pipeline.commands.summary import rejected_table
from paraloom.pipeline.run.folder import outdated, started
from paraloom.pipeline.run.records import PairsRecord, RunRecord, UnderWay
from paraloom.pipeline.run.stage import rejected_rows
from paraloom.pipeline.stages import PAIR_STAGES, folder_of, pairs_before

State = Literal["finished", "under way", "stopped", "waiting", "outdated"]


class StageStatus(BaseModel):
    """The progress of a stage. Unknown figures are None."""

    name: str
    state: State = "waiting"
    """`outdated` means that an earlier configuration made the stage."""
    rows: tuple[int | None, int | None] = (None, None)  # numbers of finished rows and all rows
    rejected: dict[str, int] = {}  # number of rows so far, by reason
    cleaned: dict[str, int] = {}  # number of pairs that `input.clean` changed, by kind
    seconds: float | None = None
    """Wall-clock time. For a stage under way, the time since its last start."""
    rate: float | None = None  # rows per second
    gpus: int = 0  # number of GPUs that the stage uses, on all machines
    remaining: float | None = None  # seconds until the stage ends
    jobs: list[RemoteJob] = []  # jobs on Flink or Dataflow


class Asked(Usage):
    """The tokens, requests and cost of a language model in the finished shards."""

    cost: float | None = None  # None if prices or token counts are unknown


class Status(BaseModel):
    """The JSON form of `paraloom status`."""

    run: str
    state: State
    stages: list[StageStatus]
    generators: dict[str, Asked]


def command(run: RunFolder, json: JsonFile = None) -> None:
    """Print rows, rates, rejected rows and the remaining time of each stage."""
    out, stages, asked = console(), status(run), _asked(run)
    states = {stage.state for stage in stages}
    state: State = "under way" if "under way" in states or _is_running(run) else "stopped"
    state = "finished" if states <= {"finished", "outdated"} else state
    remedy = "; the command that started the run resumes it" if state == "stopped" else ""
    out.print(f"{run}: {state}{remedy}", highlight=False)
    numbers = ("rows", "rejected", "rows/s", "time", "remaining")
    table = number_table("", "stage", "", numbers=numbers)
    for stage in stages:
        rejected = "" if stage.rows[0] is None else f"{sum(stage.rejected.values()):,}"
        rate = "" if stage.rate is None else f"{stage.rate:,.0f}"
        times = duration(stage.seconds), duration(stage.remaining)
        table.add_row(stage.name, stage.state, _progress(*stage.rows), rejected, rate, *times)
    out.print(table)
    for stage in stages:
        if stage.gpus and stage.rate:
            each = f"GPUs: {stage.gpus}, {stage.rate / stage.gpus:,.0f} rows/s each"
            out.print(f"{stage.name}: {each}", highlight=False)
        for job in stage.jobs[-1:]:
            out.print(f"{stage.name}: {job.address}", highlight=False, soft_wrap=True)
    for name, used in asked.items():
        cost = "" if used.cost is None else f", cost {used.cost:,.4g}"
        tokens = f"{used.tokens_in:,} tokens in, {used.tokens_out:,} out"
        requests = f"{used.requests:,} requests, {used.retries:,} retries"
        out.print(f"{name}: {requests}, {tokens}{cost}", highlight=False)
    if any(stage.rejected for stage in stages):
        out.print(rejected_table({stage.name: stage.rejected for stage in stages}))
    write_json(json, Status(run=run, state=state, stages=stages, generators=asked))


def status(folder: str, now: float | None = None) -> list[StageStatus]:
    """Return the progress of each stage. `now` is in seconds since the epoch."""
    record = started(folder)
    stale = outdated(record)
    found = []
    known = {*record.wanted, *record.stages}
    there = [name for name in record.planned or record.stages if name in known]
    for name in dict.fromkeys([*there, *record.wanted]):
        shown, stage = StageStatus(name=name), record.stages.get(name)
        if record.under_way and name == record.under_way.stage:
            _follow(shown, folder, record, time.time() if now is None else now)
        elif stage and not (name in stale and name in record.wanted):
            shown.state = "outdated" if name in stale else "finished"
            shown.seconds, shown.jobs = stage.seconds, stage.jobs
            if isinstance(stage, PairsRecord):
                shown.rows, shown.rejected = (stage.rows_in, stage.rows_in), stage.rejected
                shown.cleaned = stage.cleaned
                if stage.seconds and stage.round is None:  # not copied from a round
                    shown.rate = stage.rows_in / stage.seconds
        found.append(shown)
    return found


def duration(seconds: float | None) -> str:
    """Format a time span in its two largest units.

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


def _follow(shown: StageStatus, folder: str, record: RunRecord, now: float) -> None:
    assert record.under_way
    name, start = shown.name, record.under_way.since
    shown.jobs = record.under_way.jobs
    if (running := _is_running(folder)) is None:
        running = not _has_ended(record.under_way)
    shown.state = "under way" if running else "stopped"
    if shown.state == "under way":
        shown.seconds = max(now - start, 0)  # the clock may have been set back
    if name.rsplit("/", 1)[-1] not in PAIR_STAGES:  # a name may begin with rounds/2/
        return
    done = receipts(storage.join(folder, folder_of(name)))
    rows, total = sum(receipt.rows_in for receipt in done), _to_make(name, record)
    shown.rows, shown.rejected = (rows, total), rejected_rows(done)
    recent = [receipt for receipt in done if receipt.ended >= start]
    # Count the GPUs of each machine once, even if a new process has replaced a worker.
    on_host = {of.worker.partition(":")[0]: of.numbers.get("gpus", 0) for of in recent}
    shown.gpus = sum(on_host.values())
    made = sum(receipt.rows_in for receipt in recent)
    if made and shown.seconds:
        shown.rate = made / shown.seconds
        shown.remaining = None if total is None else (total - rows) / shown.rate


def _is_running(folder: str) -> bool | None:
    """Return whether a process has locked the run, or None if runs cannot be locked here."""
    if storage.is_remote(folder) or os.environ.get(LOCKS) == "off":
        return None
    try:
        with Path(folder, ".lock").open() as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    except OSError:  # the file system has no locks
        return None
    return False


def _has_ended(under_way: UnderWay) -> bool:
    """Return whether the command that started a stage ran on this machine and has ended.

    If the stage has a job on a service, the result is False, because the job may continue after the
    command has ended.
    """
    host, _, process = under_way.launcher.rpartition(":")
    if host != socket.gethostname() or under_way.jobs:
        return False
    try:
        os.kill(int(process), 0)  # signal 0 only checks that the process exists
    except ProcessLookupError:
        return True
    except PermissionError:  # the process belongs to another user
        pass
    return False


def _to_make(name: str, record: RunRecord) -> int | None:
    """Return how many rows a stage makes or rejects in all, or None if this is not known yet."""
    place, _, base = name.rpartition("/")
    before = base != "ingest" and pairs_before(base, record.config)
    read = record.derived(place).find(PairsRecord, before) if before else None
    if read is None:
        return None
    if base == "generate":  # `generate` also copies translations
        pairs = record.find(PairsRecord, "pivot") or record.find(PairsRecord, "ingest") or read
        asked = sum(of.n for of in record.config.chats)
        return pairs.rows_out * asked + (read.rows_out if before == "back_translate" else 0)
    each = record.config.nmt.candidates if name == "back_translate" else 1
    return int(read.rows_out * each)


def _progress(done: int | None, total: int | None) -> str:
    if done is None:
        return ""
    return f"{done:,}" if total in (None, done) else f"{done:,} of {total:,}"


def _asked(folder: str) -> dict[str, Asked]:
    configured = {of.name: of.prices for of in started(folder).config.chats}
    done = receipts(storage.join(folder, "generate"))
    used = [receipt.measured(GenerateMeasurements).generators for receipt in done]
    found = {}
    for name in dict.fromkeys(name for one in used for name in one):
        total = sum((one[name] for one in used if name in one), Usage())
        prices = configured.get(name)
        cost = total.at_prices(dict(prices) if prices else None)
        found[name] = Asked(**total.model_dump(), cost=cost)
    return found
