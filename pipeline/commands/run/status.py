"""`paraloom status`: where a run stands, read from its folder alone, wherever it is computed."""

from __future__ import annotations

import fcntl
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from beam_jobs.io import storage
from beam_jobs.io.shards import Receipt, receipts
from models.errors import UserError
from pipeline.console import console
from pipeline.manifest import Manifest
from pipeline.report.summary import rejected_table
from pipeline.stage import PAIR_STAGES

_RECENT = 100  # units that the rate is taken over: workers come and go


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStatus:
    """Where a stage stands; None is what cannot be known (yet).

    Attributes:
        state: finished, under way, stopped or waiting.
        shards, rows: done, and all there are to do.
        rejected: rows by reason, so far.
        seconds: on the clock; of a stage under way, since it was begun or taken up again.
        rate: rows per second.
        left: seconds to the end.
    """

    name: str
    state: str
    shards: tuple[int | None, int | None] = (None, None)
    rows: tuple[int | None, int | None] = (None, None)
    rejected: dict[str, int] = field(default_factory=dict)
    seconds: float | None = None
    rate: float | None = None
    left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translating:
    """What back-translation takes: workers that hold a model, one GPU each where there are any.

    Attributes:
        workers: processes that have finished a shard.
        spent: hours that they were at work, together.
        left: hours to the end, if rows go on taking as long; None before the first.
    """

    workers: int
    spent: float
    left: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Where a run stands.

    Attributes:
        at_work: whether a process is at work on it; None where only its machine could tell.
        sign_of_life: seconds since a worker last finished a shard of the stage under way.
    """

    stages: tuple[StageStatus, ...]
    at_work: bool | None
    sign_of_life: float | None = None


def status(folder: str, now: float | None = None) -> Status:
    """Where the run in `folder` stands.

    Args:
        now: seconds since the epoch.

    Raises:
        UserError: there is no run.
    """
    now = time.time() if now is None else now
    manifest = _manifest(folder)
    under_way = manifest.values.get("under_way") or {}
    at_work = _at_work(folder)
    current = under_way.get("stage")
    wanted = manifest.values.get("wanted") or list(manifest.stages)
    found: list[StageStatus] = []
    sign_of_life = None
    for name in wanted:
        if name == current:
            state = "stopped" if at_work is False else "under way"
            begun = float(under_way["since"])
            left = receipts(storage.join(folder, name)) if _of_pairs(name) else []
            last = max((receipt.ended for receipt in left), default=0.0)
            sign_of_life = now - last if last >= begun else None
            until = now if state == "under way" else max(last, begun)
            found.append(_under_way(folder, name, manifest, left, begun, until, state))
        elif name in manifest.stages:
            found.append(_finished(name, manifest.stages[name]))
        else:
            found.append(StageStatus(name=name, state="waiting"))
    return Status(stages=tuple(found), at_work=at_work, sign_of_life=sign_of_life)


def translating(folder: str) -> Translating | None:
    """What back-translation has taken and will take; None before its first shard is finished."""
    left = receipts(storage.join(folder, "back_translate"))
    if not left:
        return None
    busy = busy_seconds(left)
    done = sum(receipt.rows_in for receipt in left)
    rows = _manifest(folder).stages.get("ingest", {}).get("rows_out")
    spent = sum(busy.values()) / 3600
    rest = None if rows is None or not done else spent * (rows - done) / done
    return Translating(workers=len(busy), spent=spent, left=rest)


def busy_seconds(receipts: Iterable[Receipt]) -> dict[str, float]:
    """How long each worker was at work; what its threads did at the same time counts once."""
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


def show(folder: str, gpu_hour: float | None) -> None:
    """Print where the run in `folder` stands, and what back-translation costs at that price."""
    out = console()
    found = status(folder)
    accounts = {stage.name: {"rejected": stage.rejected} for stage in found.stages}
    out.print(Group(_headline(folder, found), _stages(found.stages)), highlight=False)
    if any(stage.rejected for stage in found.stages):
        out.print(rejected_table(accounts))
    if gpu_hour is not None:
        out.print(_cost(translating(folder), gpu_hour), highlight=False)


def duration(seconds: float | None) -> str:
    """A time span for people.

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


def _manifest(folder: str) -> Manifest:
    manifest = Manifest(folder)
    if "config" not in manifest.values:
        raise UserError(f"{folder}: no run here: it has no manifest.json")
    return manifest


def _at_work(folder: str) -> bool | None:
    """Whether a process holds the lock of a run folder on this machine (`manifest.locked`)."""
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


def _under_way(
    folder: str,
    name: str,
    manifest: Manifest,
    left: Sequence[Receipt],
    begun: float,
    until: float,
    state: str,
) -> StageStatus:
    seconds = until - begun
    if not _of_pairs(name):
        return StageStatus(name=name, state=state, seconds=seconds)
    if name == "ingest":  # a receipt stands for a whole input file: part files say more
        parts = [n for n in storage.names(storage.join(folder, name)) if n.endswith(".parquet")]
        return StageStatus(name=name, state=state, shards=(len(parts), None), seconds=seconds)
    before = _before(name, manifest)
    done, rows = sum(receipt.rows_in for receipt in left), before.get("rows_out")
    rate = _rate(left, begun, until)
    rejected: Counter[str] = Counter()
    for receipt in left:
        rejected.update(receipt.rejected)
    return StageStatus(
        name=name,
        state=state,
        shards=(len(left), before.get("shards")),
        rows=(done, rows),
        rejected=dict(rejected.most_common()),
        seconds=seconds,
        rate=rate,
        left=(rows - done) / rate if rate and rows is not None and state == "under way" else None,
    )


def _of_pairs(name: str) -> bool:
    """Whether a stage leaves pairs, of whatever round (`rounds/2/score`)."""
    return name.rsplit("/", 1)[-1] in PAIR_STAGES


def _before(name: str, manifest: Manifest) -> dict[str, Any]:
    """The account of the stage that a stage of pairs reads: its round's own, if it has one."""
    prefix, _, base = name.rpartition("/")
    before = PAIR_STAGES[PAIR_STAGES.index(base) - 1]
    return manifest.stages.get(f"{prefix}/{before}") or manifest.stages.get(before, {})


def _rate(left: Sequence[Receipt], begun: float, until: float) -> float | None:
    """Rows per second of the units that were finished last, since the stage was taken up."""
    ours = sorted((r for r in left if r.ended >= begun), key=lambda receipt: receipt.ended)
    if not ours:
        return None
    start = ours[-_RECENT - 1].ended if len(ours) > _RECENT else begun
    return sum(receipt.rows_in for receipt in ours[-_RECENT:]) / max(until - start, 1e-3)


def _finished(name: str, account: dict[str, Any]) -> StageStatus:
    rows, shards = account.get("rows_in"), account.get("shards")
    seconds = account.get("seconds")
    return StageStatus(
        name=name,
        state="finished",
        shards=(shards, shards),
        rows=(rows, rows),
        rejected=account.get("rejected", {}),
        seconds=seconds,
        rate=rows / seconds if rows is not None and seconds else None,
    )


def _headline(folder: str, found: Status) -> str:
    current = [stage for stage in found.stages if stage.state in ("under way", "stopped")]
    if not current:
        if any(stage.state == "waiting" for stage in found.stages):
            return f"{folder}: stopped; the same command goes on from here"
        return f"{folder}: finished"
    (stage,) = current
    if stage.state == "stopped":
        return f"{folder}: stopped in {stage.name}; the same command goes on from here"
    said = f"{folder}: {stage.name} for {duration(stage.seconds)}"
    if found.sign_of_life is not None:
        said += f", last shard finished {duration(found.sign_of_life)} ago"
    elif _of_pairs(stage.name):
        said += ", no shard finished yet"
    return said


def _stages(stages: Sequence[StageStatus]) -> Table:
    table = Table("stage", "")
    for name in ("shards", "rows", "rejected", "rows/s", "time", "time left"):
        table.add_column(name, justify="right")
    for stage in stages:
        table.add_row(
            stage.name,
            stage.state,
            _of(stage.shards),
            _of(stage.rows),
            "" if stage.rows[0] is None else f"{sum(stage.rejected.values()):,}",
            "" if stage.rate is None else f"{stage.rate:,.0f}",
            duration(stage.seconds),
            duration(stage.left),
        )
    return table


def _of(pair: tuple[int | None, int | None]) -> str:
    done, total = pair
    if done is None:
        return ""
    return f"{done:,}" if total in (None, done) else f"{done:,} of {total:,}"


def _cost(found: Translating | None, gpu_hour: float) -> str:
    if found is None:
        return "back-translation: no shard finished yet, so nothing to count"
    said = (
        f"back-translation: {found.workers} workers, {found.spent:,.2f} hours at work so far "
        f"({found.spent * gpu_hour:,.2f} at {gpu_hour:,.2f} an hour)"
    )
    if found.left:
        whole = found.spent + found.left
        said += f", {found.left:,.2f} more to the end ({whole * gpu_hour:,.2f} in all)"
    return said
