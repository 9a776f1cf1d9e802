"""The type of a stage, and functions that several stages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import (
    REJECTED,
    Receipt,
    Saved,
    Shard,
    content_key,
    read_shard,
    receipts,
)
from paraloom.beam_jobs.storage import remote
from paraloom.models.files import CARD, digest
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.options import MODEL_KEYS
from paraloom.pipeline.run.records import PairsRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RESOURCES, TABLE

if TYPE_CHECKING:
    from paraloom.beam_jobs.engine.launch import Result


def first_rows(shards: Sequence[Shard], columns: Sequence[str], rows: int) -> pa.Table:
    """About this many rows, from the beginnings of at most 10 part files; use it where the
    candidates of a pair must stay together: a random sample would separate them."""
    filled = [shard for shard in shards if shard.rows]
    some = filled[:: -(-len(filled) // 10)]
    return pa.concat_tables(read_shard(of, columns).slice(0, rows // len(some)) for of in some)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a run; its module defines the fields as functions and constants."""

    name: str
    depends_on: tuple[str, ...] | Callable[[Config], tuple[str, ...]] | None = None
    """The stages that it reads, or a function that returns them; None: the stages in
    the table. A configuration may lack some of them."""
    others: tuple[tuple[Run, str], ...] = ()  # stages of other runs that it reads
    version: int = 1  # bump when the stage makes a different result from the same input
    fingerprint: Callable[[Run], Any]
    """JSON values that the result depends on besides `depends_on` and `version`."""
    make: Callable[[Run, str], StageRecord]
    """Does the work, given the run and the stage's key; returns the stage's record. The record's
    `digest` stands for the result in the keys of the stages that read it."""
    is_valid: Callable[[Run, str], bool] = lambda run, stage: True
    """Whether the files that the record describes still exist, given the run and the stage's name.
    Modules that do not define it get `shards_are_valid` for pairs, `folder_is_valid` for a
    resource; any other stage counts as valid, since its record is its result."""
    check: Callable[[Config], object] = lambda config: None
    """Raises a UserError, before any stage runs, if the stage cannot run."""
    copy: Callable[[Run, Run], None] | None = None
    """Copies the result of one run (first argument) to another."""
    resource: str | None = ""
    """The path, below the stage's folder, that scorers open; None if it makes no file for them."""

    @classmethod
    def of(cls, name: str, module: Mapping[str, Any]) -> Stage:
        """Make a stage from the values of a module that are named like fields of `Stage`."""
        given = {of.name: module[of.name] for of in fields(cls) if of.name in module}
        if name in RESOURCES or TABLE[name].pairs:
            is_valid = shards_are_valid if TABLE[name].pairs else folder_is_valid
            given.setdefault("is_valid", is_valid)
        return cls(**{**given, "name": name})

    def enabled(self, config: Config) -> bool:
        """Whether a configuration has this stage."""
        return TABLE[self.name].when(config)

    def dependencies(self, config: Config) -> tuple[str, ...]:
        """The stages of its run that it may read, with this configuration."""
        if callable(self.depends_on):
            return self.depends_on(config)
        return tuple(TABLE[self.name].reads.split()) if self.depends_on is None else self.depends_on


@cache
def stages() -> dict[str, Stage]:
    """All stages, in order, loaded from their modules."""
    models = {"translation_model", "forward_model", *MODEL_KEYS.values()}
    found = {}
    for name in TABLE:
        folder = ".resources" * (name in RESOURCES)
        folder += ".selection" * (name in ("exclude", "auto_select", "judged"))
        file = "pair_models" if (several := name in models) else name
        module = import_module(f"paraloom.pipeline.stages{folder}.{file}")
        found[name] = module.STAGES[name] if several else Stage.of(name, vars(module))
    return found


def folder_is_valid(run: Run, stage: str) -> bool:
    """`Stage.is_valid` for a stage that calls `Run.publish`: the folder has the record's digest.

    The folder's card is ignored: people write their own, and Paraloom adds one to encoders.
    """
    folder = run.folder(stage)
    if not remote.exists(folder):
        return False
    return digest(remote.localise(folder), ignored=(CARD,)) == run.digest(stage)


def shards_are_valid(run: Run, stage: str) -> bool:
    """`Stage.is_valid` for a pair stage: the receipts have the record's digest, and the folder has
    exactly their files, with the right sizes (a late attempt may have left others).
    """
    found, folder = receipts(run.folder(stage)), run.folder(stage)
    accepted = [shard for receipt in found for shard in receipt.shards]
    rejected = [shard for receipt in found for shard in receipt.rejected_shards]
    exact = _has(folder, accepted) and _has(storage.join(folder, REJECTED), rejected)
    return exact and _digest(found) == run.digest(stage)


def _has(folder: str, shards: Sequence[Shard]) -> bool:
    """Whether a folder has exactly these part files, by names and sizes."""
    there = {n: size for n, size in storage.sizes(folder).items() if n.endswith(".parquet")}
    return there == {s.file: there.get(s.file) if s.size is None else s.size for s in shards}


Pairs = TypeVar("Pairs", bound=PairsRecord)


def pairs_record(kind: type[Pairs], result: Result, **more: Any) -> Pairs:
    """The record of a pair stage from the receipts of its job."""
    rows_in = sum(receipt.rows_in for receipt in result.receipts)
    rows_out = sum(receipt.rows_out for receipt in result.receipts)
    rejected = rejected_rows(result.receipts)
    if rows_in != rows_out + sum(rejected.values()):
        raise RuntimeError(f"{rows_in} rows in, {rows_out} out, rejected {rejected}")
    if saved := saved_rows(result.receipts):
        more["saved"] = saved
    return kind(
        rows_in=rows_in,
        rows_out=rows_out,
        rows_rejected=sum(rejected.values()),
        rejected=rejected,
        shards=sum(len(receipt.shards) for receipt in result.receipts),
        worker_seconds=round(sum(receipt.seconds for receipt in result.receipts), 3),
        peak_memory=max((receipt.peak_memory for receipt in result.receipts), default=0),
        metrics=result.metrics,
        digest=_digest(result.receipts),
        **more,
    )


def rejected_rows(receipts: Iterable[Receipt]) -> dict[str, int]:
    """Rejected rows by reason, the most frequent reason first."""
    counts = (Counter(receipt.rejected) for receipt in receipts)
    return dict(sum(counts, Counter[str]()).most_common())


def saved_rows(receipts: Iterable[Receipt]) -> dict[str, Saved]:
    """Rows that were not translated, by the configuration key that avoided it."""
    total: dict[str, Saved] = {}
    for receipt in receipts:
        for key, values in receipt.numbers.get("saved", {}).items():
            saved, before = Saved(**values), total.get(key, Saved(rows=0, tokens=0))
            total[key] = Saved(rows=before.rows + saved.rows, tokens=before.tokens + saved.tokens)
    return total


def _digest(of: Sequence[Receipt]) -> str:
    return content_key([(s.name, s.rows, s.digest) for receipt in of for s in receipt.shards])
