"""Shards (part files) and the receipts that say which units of work are finished.

A job works on units: a shard of the previous stage, or an input file. For every finished unit it
writes a receipt with the key of everything that the output depends on, the checksums of its part
files, and counts. The receipt is written last: a unit is finished if there is a receipt with the
expected key and its part files have their checksums. A part file without a receipt is ignored.

    <stage>/part-…-<digest>.parquet             accepted rows
    <stage>/_rejected/part-…-<digest>.parquet   rejected rows, with a reason
    <stage>/_receipts/<unit>.json
    <stage>/_earlier/<unit>.json                receipts of an earlier output, while its columns
                                                may be copied

Readers of data sets skip names that begin with an underscore: to them, a stage's folder has its
accepted rows.

Runners may attempt a unit twice at once, and GPUs give each attempt other bytes. The names of part
files end in digits of their checksums, so no attempt overwrites files of another; the first one to
write a receipt wins. What others left is removed at the end of the job, or by the next command.
"""

import hashlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.part_files import PartFile, decode, encode
from paraloom.beam_jobs.storage import MissingError
from paraloom.models.errors import UserError
from paraloom.models.memory import peak_memory

RECEIPTS = "_receipts"
REJECTED = "_rejected"
EARLIER = "_earlier"
"""The folder of receipts that are out of date."""

ATTEMPTS = "_attempts"
"""The folder of crash records, see `crash_recovery`."""

ROW_NUMBER = ", row "
"""Before the number at the end of a reason that names a row of a file; counted as one."""

HASHES = "_hashes"
"""The folder of a job's files between its steps, see `WithDuplicates`."""

UNDER_WAY = "_progress"
"""The folder of the numbers of rows that are done of unfinished units."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part file: its path, its rows, the checksum of its bytes, and their number."""

    path: str
    rows: int
    digest: str
    size: int | None = None  # receipts of version 0.2 do not say

    @property
    def file(self) -> str:
        """The file's name, without folder."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def name(self) -> str:
        """The file's name without suffix and checksum."""
        return self.file.removesuffix(".parquet").removesuffix(f"-{self.digest[:8]}")


class DamagedError(UserError):
    """A part file was changed after it was written; the next run makes it again."""

    @property
    def path(self) -> str:
        """The path in the message."""
        return str(self).split(_DAMAGED)[0]


_DAMAGED = (
    ": damaged, its checksum is not the one it was written with; "
    "remove it, and `paraloom corpus` makes it anew, it alone"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit of work: an input shard, and the key of everything that its output depends on.

    Attributes:
        candidates: rows that each row of the shard becomes, accepted or rejected.
    """

    index: int
    key: str
    shard: Shard
    candidates: int = 1

    @property
    def name(self) -> str:
        """The name of the output and of its receipt."""
        return self.shard.name

    @property
    def rows(self) -> int:
        """Rows to account for."""
        return self.shard.rows * self.candidates


class Saved(BaseModel):
    """Rows that are not translated, and the Moses tokens of their sources."""

    rows: int
    tokens: int


class Measurements(BaseModel):
    """What a job measures of a unit, in its receipts. A job that measures has a subclass beside it,
    and reads its fields by `Receipt.measured`."""

    model_config = ConfigDict(frozen=True, extra="allow")


Measured = TypeVar("Measured", bound=Measurements)


class Receipt(BaseModel):
    """The record of a finished unit."""

    model_config = ConfigDict(frozen=True)

    name: str
    key: str
    rows_in: int  # rows read: the rows of `shards` and the rejected rows
    shards: tuple[Shard, ...]
    rejected: dict[str, int]  # rows per reason
    rejected_shards: tuple[Shard, ...] = ()
    seconds: float = 0.0  # worker time
    peak_memory: int = 0
    """Bytes; the largest memory of the worker process until the end of the unit."""
    ended: float = 0.0  # seconds since the epoch, by the worker's clock
    worker: str = ""  # host and process id
    numbers: dict[str, Any] = Field(default_factory=dict)  # of the job's `Measurements`

    @property
    def rows_out(self) -> int:
        """Accepted rows."""
        return sum(shard.rows for shard in self.shards)

    def measured(self, kind: type[Measured]) -> Measured:
        """What the job of this kind of measurements measured."""
        return kind.model_validate(self.numbers)

    @property
    def paths(self) -> list[str]:
        """The paths of all part files."""
        return [shard.path for shard in (*self.shards, *self.rejected_shards)]

    def at(self, folder: str) -> Self:
        """This receipt with its part files in another folder."""

        def there(shards: Iterable[Shard], *below: str) -> tuple[Shard, ...]:
            place = storage.join(folder, *below, "")
            return tuple(Shard(place + s.file, s.rows, s.digest, s.size) for s in shards)

        shards, rejected = there(self.shards), there(self.rejected_shards, REJECTED)
        return self.model_copy(update={"shards": shards, "rejected_shards": rejected})


def content_key(*parts: object) -> str:
    """The SHA-256 of everything that a result depends on, as JSON; equal for equal content.

    >>> content_key("score", {"b": 1, "a": 2}) == content_key("score", {"a": 2, "b": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def units(shards: Sequence[Shard], key: str, *, candidates: int = 1) -> list[Unit]:
    """One unit for each shard; its key combines the stage's `key` and the shard's content."""
    return [
        Unit(index=i, key=content_key(key, of.name, of.digest), shard=of, candidates=candidates)
        for i, of in enumerate(shards)
    ]


def read_shard(shard: Shard, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a part file, whole or the `columns` that it has, after verifying its checksum."""
    return decode(read_whole(shard), columns)


def read_whole(shard: Shard) -> bytes:
    """The bytes of a part file, after verifying its checksum."""
    data = storage.read_bytes(shard.path)
    if storage.digest(data) != shard.digest:
        raise DamagedError(f"{shard.path}{_DAMAGED}")
    return data


def write_shard(path: str, table: pa.Table | PartFile, *, unique: bool = False) -> Shard:
    """Write a part file atomically; its name is `unique` with digits of its checksum."""
    data = table.data if isinstance(table, PartFile) else encode(table)
    digest = storage.digest(data)
    if unique:
        path = f"{path.removesuffix('.parquet')}-{digest[:8]}.parquet"
    storage.write_bytes(path, data)
    return Shard(path, table.num_rows, digest, len(data))


def finished(folder: str, name: str, key: str) -> Receipt | None:
    """The receipt of a finished unit: it has `key`, and all part files have their checksums."""
    receipt = read_receipt(folder, name)
    if receipt is None or receipt.key != key:
        return None
    try:
        for shard in (*receipt.shards, *receipt.rejected_shards):
            read_whole(shard)
    except (MissingError, DamagedError):
        return None
    return receipt


def commit(
    folder: str,
    name: str,
    key: str,
    rows_in: int | Callable[[], int],
    pieces: Iterable[tuple[str, pa.Table | PartFile, pa.Table]],
    *,
    started: float,
    numbers: Measurements | Callable[[], Measurements] | None = None,
) -> Receipt:
    """Write a unit's part files, check that no row was lost, and write the receipt.

    If another attempt has finished the unit meanwhile, its receipt is returned.

    Args:
        rows_in: rows read; a function where they are known only after the last piece.
        pieces: part name, accepted rows, and rejected rows (with a `reason` column).
        started: `time.monotonic()` when the work on the unit began.
        numbers: a function where they are known only after the last piece.
    """
    shards: list[Shard] = []
    rejected_shards: list[Shard] = []
    reasons: Counter[str] = Counter()
    for part, table, rejected in pieces:
        if rejected.num_rows:
            path = storage.join(folder, REJECTED, f"{part}.parquet")
            rejected_shards.append(write_shard(path, rejected, unique=True))
            for entry in pc.value_counts(as_counted(rejected["reason"])).to_pylist():
                reasons[entry["values"]] += entry["counts"]
        path = storage.join(folder, f"{part}.parquet")
        shards.append(write_shard(path, table, unique=True))
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
        numbers=_values(numbers() if callable(numbers) else numbers),
    )
    if receipt.rows_out + sum(reasons.values()) != read:
        raise RuntimeError(
            f"{folder}/{name}: {read} rows in, but {receipt.rows_out} out "
            f"and {sum(reasons.values())} rejected"
        )
    if not write_receipt(folder, receipt, replace=False):
        if first := finished(folder, name, key):
            for path in set(receipt.paths) - set(first.paths):
                storage.remove(path)
            return first
        write_receipt(folder, receipt)  # what was there is damaged
    return receipt


def _values(numbers: Measurements | None) -> dict[str, Any]:
    return numbers.model_dump(mode="json", exclude_unset=True) if numbers else {}


def as_counted(reasons: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Reasons of rejection without the numbers that tell rows apart.

    >>> as_counted(pa.array(["in sts/2012/MSRpar (equal), row 417"]))[0].as_py()
    'in sts/2012/MSRpar (equal)'
    """
    return pc.replace_substring_regex(reasons, f"{ROW_NUMBER}[0-9]+$", "")


def write_receipt(
    folder: str, receipt: Receipt, kind: str = RECEIPTS, *, replace: bool = True
) -> bool:
    """Mark a unit as finished, or with `replace=False` find that it is, and return False.

    Paths are relative on disk, so that a run folder can be moved.
    """
    text = receipt.at("").model_dump_json(indent=1, exclude_unset=True)
    path = receipt_path(folder, receipt.name, kind)
    return storage.write_bytes(path, text.encode(), replace=replace)


def read_receipt(folder: str, name: str, kind: str = RECEIPTS) -> Receipt | None:
    """The receipt of a unit, or None if it is missing or invalid."""
    try:
        data = storage.read_bytes(receipt_path(folder, name, kind))
        return Receipt.model_validate_json(data).at(folder)
    except (MissingError, ValueError):
        return None


def outdate(folder: str, receipts: Iterable[Receipt]) -> None:
    """Mark units as unfinished; a receipt is set aside if its columns may be copied."""

    def set_aside(receipt: Receipt) -> None:
        if receipt.numbers.get("columns"):
            write_receipt(folder, receipt, EARLIER)
        storage.remove(receipt_path(folder, receipt.name))

    storage.several(set_aside, receipts)


def receipts(folder: str) -> list[Receipt]:
    """All receipts of a stage, in the order of their names."""
    names = [n.removesuffix(".json") for n in storage.names(storage.join(folder, RECEIPTS))]
    several = storage.several if storage.is_remote(folder) else map
    found = several(lambda name: read_receipt(folder, name), names)
    return [receipt for receipt in found if receipt is not None]


def receipt_path(folder: str, name: str, kind: str = RECEIPTS) -> str:
    """Where the receipt of a unit is."""
    return storage.join(folder, kind, f"{name}.json")


def remove_orphans(folder: str, keep: Iterable[Receipt]) -> None:
    """Remove the files of a stage folder that do not belong to the units of `keep`.

    Part files, receipts, crash records, hashes, progress, and temporary files of killed processes.
    """
    needed = set()
    for receipt in keep:
        needed |= {receipt_path(folder, receipt.name), *receipt.paths}
    kinds = {"": ".parquet", REJECTED: ".parquet", HASHES: "", UNDER_WAY: ""}
    kinds |= dict.fromkeys((RECEIPTS, EARLIER, ATTEMPTS), ".json")
    for subfolder, suffix in kinds.items():
        parent = storage.join(folder, subfolder) if subfolder else folder
        storage.remove_temporary(parent)
        paths = [storage.join(parent, n) for n in storage.names(parent) if n.endswith(suffix)]
        storage.remove_all(path for path in paths if path not in needed)


def copy_pairs(source: str, target: str) -> None:
    """Replace the stage at `target` by a copy of a finished one: part files and receipts.

    Receipts are removed first and written last, so that a partial copy is never complete.
    """

    def copied(receipt: Receipt) -> Receipt:
        copy = receipt.at(target)
        shards = (*receipt.shards, *receipt.rejected_shards)
        for shard, path in zip(shards, copy.paths, strict=True):
            storage.write_bytes(path, read_whole(shard))
        write_receipt(target, copy)
        return copy

    before = storage.join(target, RECEIPTS)
    storage.remove_all(storage.join(before, name) for name in storage.names(before))
    remove_orphans(target, storage.several(copied, receipts(source)))
