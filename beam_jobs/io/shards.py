"""Shards: part files that are whole, known by what they were made from, and accounted for.

A job works on units (a shard of the stage before, or an input file). For every finished unit it
leaves a receipt: the key of all that the unit was made from, its part files with their checksums,
and its counts. The receipt is written last, so a unit is finished when a receipt with the expected
key is there and the part files still have their checksums; a part file alone means nothing.

    <stage>/part-….parquet            the rows that go on
    <stage>/rejected/part-….parquet   the rows that do not, with a reason
    <stage>/receipts/<unit>.json
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from beam_jobs.io import storage
from beam_jobs.io.storage import MissingError
from models.errors import UserError
from models.memory import peak_memory


@dataclass(frozen=True, slots=True)
class Shard:
    """A part file: its path, its rows, and the checksum of its bytes."""

    path: str
    rows: int
    digest: str

    @property
    def name(self) -> str:
        """The file's name without folder and suffix."""
        return self.path.rsplit("/", 1)[-1].removesuffix(".parquet")


class DamagedError(UserError):
    """A part file is not what was written; a run that reads it makes it anew."""

    @property
    def path(self) -> str:
        """The file, as the message names it."""
        return str(self).split(_DAMAGED)[0]


_DAMAGED = (
    ": damaged, its checksum is not the one it was written with; "
    "remove it, and `paraloom corpus` makes it anew, it alone"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a job works on at once: an input shard, and the key of all its output depends on."""

    index: int
    key: str
    shard: Shard

    @property
    def name(self) -> str:
        """The name under which the output and its receipt stand."""
        return self.shard.name

    @property
    def rows(self) -> int:
        """Rows to read."""
        return self.shard.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The account of a finished unit.

    Attributes:
        rows_in: rows read; always the rows of `shards` and of `rejected` together.
        rejected: rows per reason.
        seconds: worker time.
        peak_memory: bytes, the most that the worker had held when it finished the unit.
        ended: when it was finished, in seconds since the epoch by the worker's clock.
        worker: the machine and process that did it.
        numbers: what the job measured on the way (tokens, decile bounds).
    """

    name: str
    key: str
    rows_in: int
    shards: tuple[Shard, ...]
    rejected: dict[str, int]
    rejected_shards: tuple[Shard, ...] = ()
    seconds: float = 0.0
    peak_memory: int = 0
    ended: float = 0.0
    worker: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def rows_out(self) -> int:
        """Rows that go on."""
        return sum(shard.rows for shard in self.shards)


def content_key(*parts: object) -> str:
    """The SHA-256 of what a result depends on, as JSON; equal for equal content.

    >>> content_key("score", {"b": 1, "a": 2}) == content_key("score", {"a": 2, "b": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def units(shards: Sequence[Shard], key: str) -> list[Unit]:
    """One unit a shard; its key joins the stage's `key` and the shard's content."""
    return [
        Unit(index=i, key=content_key(key, shard.name, shard.digest), shard=shard)
        for i, shard in enumerate(shards)
    ]


def read_shard(shard: Shard, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a part file (or some of its columns), checksum first.

    Raises:
        UserError: the file is not there.
        DamagedError: it is not what was written.
    """
    data = read_whole(shard)
    columns = list(columns) if columns is not None else None
    return pq.read_table(pa.BufferReader(data), columns=columns, use_threads=False)


def read_whole(shard: Shard) -> bytes:
    """The bytes of a part file, checksum first; raises as `read_shard`."""
    data = storage.read_bytes(shard.path)
    if storage.digest(data) != shard.digest:
        raise DamagedError(f"{shard.path}{_DAMAGED}")
    return data


def write_shard(path: str, table: pa.Table) -> Shard:
    """Write a part file, whole or not at all."""
    sink = pa.BufferOutputStream()
    rows = max(table.num_rows, 1)  # one row group; a dictionary of texts that differ only costs
    pq.write_table(table, sink, compression="zstd", row_group_size=rows, use_dictionary=False)
    data = sink.getvalue().to_pybytes()
    storage.write_bytes(path, data)
    return Shard(path, table.num_rows, storage.digest(data))


def finished(folder: str, name: str, key: str) -> Receipt | None:
    """The receipt of a unit that needs no work: same key, every part file intact."""
    receipt = read_receipt(folder, name)
    if receipt is None or receipt.key != key:
        return None
    try:
        for shard in (*receipt.shards, *receipt.rejected_shards):
            if storage.digest(storage.read_bytes(shard.path)) != shard.digest:
                return None
    except MissingError:
        return None
    return receipt


def commit(
    folder: str,
    name: str,
    key: str,
    rows_in: int | Callable[[], int],
    pieces: Iterable[tuple[str, pa.Table, pa.Table]],
    *,
    started: float,
    numbers: dict[str, Any] | None = None,
) -> Receipt:
    """Write a unit's part files, check that no row was lost, and write the receipt.

    Args:
        rows_in: rows read; a function where they are known only after the last piece.
        pieces: part name, rows that go on, and rows rejected (with a `reason` column).
        started: `time.monotonic()` when the work on the unit began.

    Raises:
        RuntimeError: rows in are not rows out and rows rejected (a fault of the job itself).
    """
    shards: list[Shard] = []
    rejected_shards: list[Shard] = []
    reasons: Counter[str] = Counter()
    for part, table, rejected in pieces:
        if rejected.num_rows:
            path = storage.join(folder, "rejected", f"{part}.parquet")
            rejected_shards.append(write_shard(path, rejected))
            for entry in pc.value_counts(rejected["reason"]).to_pylist():
                reasons[entry["values"]] += entry["counts"]
        else:
            storage.remove(storage.join(folder, "rejected", f"{part}.parquet"))
        shards.append(write_shard(storage.join(folder, f"{part}.parquet"), table))
    read = rows_in() if callable(rows_in) else rows_in
    receipt = Receipt(
        name=name,
        key=key,
        rows_in=read,
        shards=tuple(shards),
        rejected=dict(sorted(reasons.items())),
        rejected_shards=tuple(rejected_shards),
        seconds=round(time.monotonic() - started, 3),
        peak_memory=peak_memory(),
        ended=round(time.time(), 3),
        worker=f"{socket.gethostname()}:{os.getpid()}",
        numbers=numbers or {},
    )
    if receipt.rows_out + sum(reasons.values()) != read:
        raise RuntimeError(
            f"{folder}/{name}: {read} rows in, but {receipt.rows_out} out "
            f"and {sum(reasons.values())} rejected"
        )
    write_receipt(folder, receipt)
    return receipt


def write_receipt(folder: str, receipt: Receipt) -> None:
    """Mark a unit as finished. Paths are kept relative, so that a run folder can be moved."""

    def relative(shards: tuple[Shard, ...]) -> tuple[Shard, ...]:
        return tuple(replace(s, path=s.path.removeprefix(whole).lstrip("/")) for s in shards)

    whole = storage.join(folder, "")  # as the shards' paths were joined

    kept = replace(
        receipt,
        shards=relative(receipt.shards),
        rejected_shards=relative(receipt.rejected_shards),
    )
    text = json.dumps(asdict(kept), ensure_ascii=False, indent=1)
    storage.write_bytes(_receipt_path(folder, receipt.name), text.encode())


def read_receipt(folder: str, name: str) -> Receipt | None:
    """The receipt of a unit, or None where there is none that can be read."""

    def absolute(shards: list[dict]) -> tuple[Shard, ...]:
        return tuple(Shard(storage.join(folder, s["path"]), s["rows"], s["digest"]) for s in shards)

    path = _receipt_path(folder, name)
    try:
        fields = json.loads(storage.read_bytes(path))
        fields["shards"] = absolute(fields["shards"])
        fields["rejected_shards"] = absolute(fields["rejected_shards"])
        return Receipt(**fields)
    except (MissingError, ValueError, KeyError, TypeError):
        return None


def receipts(folder: str) -> list[Receipt]:
    """All receipts of a stage, in the order of their names."""
    names = [n.removesuffix(".json") for n in storage.names(storage.join(folder, "receipts"))]
    several = _readers().map if storage.is_remote(folder) else map  # there the way takes long
    found = several(lambda name: read_receipt(folder, name), names)
    return [receipt for receipt in found if receipt is not None]


@cache
def _readers() -> ThreadPoolExecutor:
    """Threads that last, since each has a client of its own."""
    return ThreadPoolExecutor(16)


def remove_orphans(folder: str, keep: Iterable[Receipt]) -> None:
    """Remove part files and receipts in a stage folder that belong to no unit of `keep`.

    What a killed process was writing is still there under its temporary name: that goes too.
    """
    keep = list(keep)
    wanted = {_receipt_path(folder, receipt.name) for receipt in keep}
    for receipt in keep:
        wanted.update(shard.path for shard in (*receipt.shards, *receipt.rejected_shards))
    kinds = {"": ".parquet", "rejected": ".parquet", "receipts": ".json", "attempts": ".json"}
    for below, suffix in kinds.items():
        place = storage.join(folder, below) if below else folder
        storage.remove_temporary(place)
        for name in storage.names(place):
            path = storage.join(place, name)
            if name.endswith(suffix) and path not in wanted:
                storage.remove(path)


def _receipt_path(folder: str, name: str) -> str:
    return storage.join(folder, "receipts", f"{name}.json")
