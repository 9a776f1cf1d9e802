"""Shards (part files) of a stage, and the receipts of finished units.

A unit is one shard of the previous stage, or a range of an input file. When a job finishes a unit,
it writes the unit's part files first and then the receipt. The receipt contains the unit's key, the
checksums of the part files, and counts. A unit is finished if the receipt has the expected key and
the checksums of the part files are correct. Part files without a receipt are ignored.

    <stage>/part-…-<digest>.parquet             accepted rows
    <stage>/_rejected/part-…-<digest>.parquet   rejected rows, each with a reason
    <stage>/_receipts/<unit>.json               one receipt
    <stage>/_receipts/all.jsonl                 all receipts of a finished stage
    <stage>/_earlier/<unit>.json                an outdated receipt, by which `score` copies columns
    <stage>/_earlier/<digest>.jsonl             receipts, by which `reuse` copies translations

Libraries for data sets skip names that start with an underscore, so they read accepted rows only.

A runner may process the same unit twice at the same time, and on GPUs the results may differ. The
name of a part file ends in digits of its checksum, so no attempt overwrites another attempt's
files. The first receipt is valid. Files that this receipt does not name are removed later.
"""

import hashlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
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
_ALL = "all.jsonl"
REJECTED = "_rejected"
EARLIER = "_earlier"
ATTEMPTS = "_attempts"
HASHES = "_hashes"  # temporary files of `transforms.duplicates`
UNDER_WAY = "_progress"

ROW_NUMBER = ", row "
"""Separates a reason from the row number that follows."""
REPEATS_NEARLY = "nearly repeats an earlier pair"  # followed by `, id` and the earlier pair's id
_NAMED = f"^({REPEATS_NEARLY}), id (?s:.*)$|{ROW_NUMBER}[0-9]+$"


@dataclass(frozen=True, slots=True)
class Shard:
    """A part file: its path, number of rows, checksum and size."""

    path: str
    rows: int
    digest: str
    size: int  # bytes

    @property
    def file(self) -> str:
        """Name of the file, without its folder."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def name(self) -> str:
        """Name of the file, without its suffix and checksum."""
        return self.file.removesuffix(".parquet").removesuffix(f"-{self.digest[:8]}")


class DamagedError(UserError):
    """Raised if the content of a part file changed after it was written."""

    @property
    def path(self) -> str:
        """Path of the damaged file."""
        return str(self).split(_DAMAGED)[0]


_DAMAGED = (
    ": damaged, its checksum has changed since it was written; "
    "remove it, and `paraloom corpus` makes only this file again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """An input shard to process. `key` is a digest of everything that the output depends on."""

    index: int
    key: str
    shard: Shard
    candidates: int = 1  # output rows per input row, accepted or rejected

    @property
    def name(self) -> str:
        """Name of the output and of the receipt."""
        return self.shard.name

    @property
    def rows(self) -> int:
        """Expected number of output rows, accepted or rejected."""
        return self.shard.rows * self.candidates


class Saved(BaseModel):
    """Counts of the rows that needed no translation."""

    rows: int
    tokens: int  # number of Moses tokens in the texts that needed no translation


class Measurements(BaseModel):
    """Base class of the measurements that a job stores in a unit's receipt."""

    model_config = ConfigDict(frozen=True, extra="allow")


Measured = TypeVar("Measured", bound=Measurements)


class Receipt(BaseModel):
    """The record of a finished unit: its key, part files and counts."""

    model_config = ConfigDict(frozen=True)

    name: str
    key: str
    rows_in: int  # accepted and rejected rows
    shards: tuple[Shard, ...]
    rejected: dict[str, int]  # rows per reason
    rejected_shards: tuple[Shard, ...] = ()
    seconds: float = 0.0
    peak_memory: int = 0  # bytes; the worker process's peak until the unit ended
    ended: float = 0.0  # seconds since the epoch, by the worker's clock
    worker: str = ""  # host name and process id
    numbers: dict[str, Any] = Field(default_factory=dict)  # the job's `Measurements`

    @property
    def rows_out(self) -> int:
        """Number of accepted rows."""
        return sum(shard.rows for shard in self.shards)

    def measured(self, kind: type[Measured]) -> Measured:
        """Return the measurements as an instance of the job's subclass."""
        return kind.model_validate(self.numbers)

    @property
    def paths(self) -> list[str]:
        """Paths of all part files of the unit."""
        return [shard.path for shard in (*self.shards, *self.rejected_shards)]

    def at(self, folder: str) -> Self:
        """Return a copy of the receipt in which all part files are in the stage folder `folder`."""

        def there(shards: Iterable[Shard], *below: str) -> tuple[Shard, ...]:
            place = storage.join(folder, *below, "")
            return tuple(Shard(place + s.file, s.rows, s.digest, s.size) for s in shards)

        shards, rejected = there(self.shards), there(self.rejected_shards, REJECTED)
        return self.model_copy(update={"shards": shards, "rejected_shards": rejected})


def content_key(*parts: object) -> str:
    """Return the SHA-256 of `parts` as JSON.

    >>> content_key("score", {"b": 1, "a": 2}) == content_key("score", {"a": 2, "b": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def units(shards: Sequence[Shard], key: str, *, candidates: int = 1) -> list[Unit]:
    """Make one unit per shard. A unit's key depends on the stage's `key` and on the shard."""
    return [
        Unit(index=i, key=content_key(key, of.name, of.digest), shard=of, candidates=candidates)
        for i, of in enumerate(shards)
    ]


def read_shard(shard: Shard, columns: Sequence[str] | None = None) -> pa.Table:
    """Verify a part file's checksum and read `columns`, or all columns if None."""
    return decode(read_whole(shard), columns)


def read_whole(shard: Shard) -> bytes:
    """Verify a part file's checksum and return its bytes."""
    data = storage.read_bytes(shard.path)
    if storage.digest(data) != shard.digest:
        raise DamagedError(f"{shard.path}{_DAMAGED}")
    return data


def write_shard(path: str, table: pa.Table | PartFile, *, unique: bool = False) -> Shard:
    """Write a part file atomically. With `unique`, its name ends in digits of its checksum."""
    data = table.data if isinstance(table, PartFile) else encode(table)
    digest = storage.digest(data)
    if unique:
        path = f"{path.removesuffix('.parquet')}-{digest[:8]}.parquet"
    storage.write_bytes(path, data)
    return Shard(path, table.num_rows, digest, len(data))


def finished(folder: str, name: str, key: str) -> Receipt | None:
    """Return a unit's receipt if its key is `key` and all part files match their checksums."""
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
    numbers: Measurements | None = None,
    *,
    started: float,
) -> Receipt:
    """Write a unit's part files, check that no row was lost, and write the unit's receipt.

    If another attempt finished the unit first, keep that attempt's files and return its receipt.

    Args:
        rows_in: number of accepted and rejected rows that are expected, or a function that returns
            this number after the last piece.
        pieces: for each part, its name, accepted rows, and rejected rows with a `reason`.
        numbers: measurements, which may change until the last piece.
        started: start of the unit, from `time.monotonic()`.
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
    read, lost = rows_in() if callable(rows_in) else rows_in, reasons.total()
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
        numbers=numbers.model_dump(mode="json", exclude_unset=True) if numbers else {},
    )
    if receipt.rows_out + lost != read:
        found = f"{receipt.rows_out} out and {lost} rejected"
        raise RuntimeError(f"{folder}/{name}: {read} rows in, but {found}")
    if not write_receipt(folder, receipt, replace=False):
        if first := finished(folder, name, key):
            for path in set(receipt.paths) - set(first.paths):
                storage.remove(path)
            return first
        write_receipt(folder, receipt)
    return receipt


def as_counted(reasons: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Remove row numbers and ids from reasons, so that equal reasons are counted together.

    >>> as_counted(pa.array(["in sts/2012/MSRpar (equal), row 417"]))[0].as_py()
    'in sts/2012/MSRpar (equal)'
    """
    return pc.replace_substring_regex(reasons, _NAMED, r"\1")


def write_receipt(
    folder: str, receipt: Receipt, kind: str = RECEIPTS, *, replace: bool = True
) -> bool:
    """Write a receipt; with `replace=False`, return False if the unit already has a receipt."""
    # The stored paths have no folders, so that a run can be moved.
    text = receipt.at("").model_dump_json(indent=1, exclude_unset=True)
    path = receipt_path(folder, receipt.name, kind)
    if replace and kind == RECEIPTS:
        expand(folder)
    return storage.write_bytes(path, text.encode(), replace=replace)


def read_receipt(folder: str, name: str, kind: str = RECEIPTS) -> Receipt | None:
    """Read a unit's receipt; return None if it is missing or invalid."""
    try:
        data = storage.read_bytes(receipt_path(folder, name, kind))
        return Receipt.model_validate_json(data).at(folder)
    except (MissingError, ValueError):
        return None


def outdate(folder: str, receipts: Iterable[Receipt]) -> None:
    """Remove receipts, so that their units are processed again. Copy receipts of `score` first."""

    def set_aside(receipt: Receipt) -> None:
        if receipt.numbers.get("columns"):
            write_receipt(folder, receipt, EARLIER)
        storage.remove(receipt_path(folder, receipt.name))

    storage.several(set_aside, receipts)


def compact(folder: str, receipts: Iterable[Receipt]) -> None:
    """Write all receipts of a finished stage into one file, so that one request can read them."""
    in_order = sorted(receipts, key=lambda receipt: receipt.name)
    lines = "\n".join(of.at("").model_dump_json(exclude_unset=True) for of in in_order).encode()
    storage.write_bytes(compacted(folder), storage.digest(lines).encode() + b"\n" + lines)


def expand(folder: str) -> None:
    """Remove the file that `compact` wrote. Call this before you change a receipt."""
    storage.remove(compacted(folder))


def compacted(folder: str) -> str:
    """Path of the file with all receipts of a finished stage."""
    return storage.join(folder, RECEIPTS, _ALL)


def receipts(folder: str) -> list[Receipt]:
    """Return all receipts of a stage, sorted by name. Prefer the file that `compact` wrote."""
    with suppress(MissingError, ValueError):
        digest, _, lines = storage.read_bytes(compacted(folder)).partition(b"\n")
        if storage.digest(lines).encode() == digest:
            return [Receipt.model_validate_json(of).at(folder) for of in lines.split(b"\n") if of]
    places = storage.names(storage.join(folder, RECEIPTS))
    names = [name.removesuffix(".json") for name in places if name.endswith(".json")]
    several = storage.several if storage.is_remote(folder) else map
    found = several(lambda name: read_receipt(folder, name), names)
    return [receipt for receipt in found if receipt is not None]


def receipt_path(folder: str, name: str, kind: str = RECEIPTS) -> str:
    """Path of the receipt of a unit."""
    return storage.join(folder, kind, f"{name}.json")


def remove_orphans(folder: str, keep: Iterable[Receipt]) -> None:
    """Remove temporary files, and all part files and receipts except those of `keep`."""
    needed = set()
    for receipt in keep:
        needed |= {receipt_path(folder, receipt.name), *receipt.paths}
    kinds = {"": ".parquet", REJECTED: ".parquet", RECEIPTS: ".json", ATTEMPTS: ".json"}
    kinds |= dict.fromkeys((EARLIER, HASHES, UNDER_WAY), "")
    for subfolder, suffix in kinds.items():
        parent = storage.join(folder, subfolder) if subfolder else folder
        storage.remove_temporary(parent)
        paths = [storage.join(parent, n) for n in storage.names(parent) if n.endswith(suffix)]
        storage.remove_all(path for path in paths if path not in needed)


def copy_pairs(source: str, target: str) -> None:
    """Replace the stage at `target` by a copy of the finished stage at `source`.

    Old receipts are removed first, so that a partial copy never looks finished.
    """

    def copied(receipt: Receipt) -> Receipt:
        copy = receipt.at(target)
        shards = (*receipt.shards, *receipt.rejected_shards)
        for shard, path in zip(shards, copy.paths, strict=True):
            storage.write_bytes(path, read_whole(shard))
        write_receipt(target, copy)
        return copy

    storage.clear(storage.join(target, RECEIPTS))
    remove_orphans(target, copies := storage.several(copied, receipts(source)))
    compact(target, copies)
