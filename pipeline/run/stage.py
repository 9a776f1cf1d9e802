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
    """Read about `rows` rows from the beginnings of at most 10 part files.

    Unlike random rows, consecutive rows keep the candidates of a source together.
    """
    filled = [shard for shard in shards if shard.rows]
    some = filled[:: -(-len(filled) // 10)]
    return pa.concat_tables(read_shard(of, columns).slice(0, rows // len(some)) for of in some)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A step of a run. Its module defines the fields as functions and constants."""

    name: str
    depends_on: tuple[str, ...] | Callable[[Config], tuple[str, ...]] = ()
    """The stages that this stage reads, or a function that returns these stages. Stages that the
    configuration does not have are ignored. Default: the column `reads` of `TABLE`."""
    others: tuple[tuple[Run, str], ...] = ()  # stages of other runs that this stage reads
    version: int = 1  # increase it when the stage makes another result from the same input
    fingerprint: Callable[[Run], Any]
    """Returns JSON values on which the result depends, besides other stages and `version`."""
    make: Callable[[Run, str], StageRecord]
    """Does the work, given the run and the stage's key, and returns the stage's record."""
    is_valid: Callable[[Run, str], bool] = lambda run, stage: True
    """Returns whether the files are complete, given the run and the stage's name. Default:
    `shards_are_valid` for pairs, `folder_is_valid` for resources, True for other stages, whose
    record contains the result."""
    check: Callable[[Config], object] = lambda config: None
    """Raises a UserError if the stage cannot run. It is called before the first stage runs."""
    copy: Callable[[Run, Run], None] | None = None
    """Copies the result from the first run to the second."""
    resource: str | None = ""
    """The path that scorers open, relative to the stage's folder. None if there is no such file."""

    @classmethod
    def of(cls, name: str, module: Mapping[str, Any]) -> Stage:
        """Make a stage from its module. A global with the name of a field sets the field."""
        row = TABLE[name]
        given: dict[str, Any] = {"depends_on": tuple(row.reads.split())}
        if name in RESOURCES or row.pairs:
            given["is_valid"] = shards_are_valid if row.pairs else folder_is_valid
        given |= {of.name: module[of.name] for of in fields(cls) if of.name in module}
        return cls(**{**given, "name": name})

    def enabled(self, config: Config) -> bool:
        """Whether a configuration has the stage."""
        return TABLE[self.name].when(config)

    def dependencies(self, config: Config) -> tuple[str, ...]:
        """List the stages of the same run that this stage may read. The run may lack some."""
        return self.depends_on(config) if callable(self.depends_on) else self.depends_on


_MODULES = {
    **{name: f"selection.{name}" for name in ("exclude", "auto_select", "judged")},
    "forward_nmt": "nmt",
    **{name: f"resources.{name}" for name in RESOURCES},
    **dict.fromkeys(("translation_model", "forward_model"), "resources.pair_models"),
    **dict.fromkeys(MODEL_KEYS.values(), "resources.pair_models"),
}


@cache
def stages() -> dict[str, Stage]:
    """Load all stages from their modules, in the order of `TABLE`."""
    found = {}
    for name in TABLE:
        module = vars(import_module(f"paraloom.pipeline.stages.{_MODULES.get(name, name)}"))
        found[name] = module.get("STAGES", {}).get(name) or Stage.of(name, module)
    return found


def folder_is_valid(run: Run, stage: str) -> bool:
    """Whether the stage's folder, without its card, still has the digest in the stage's record."""
    folder = run.folder(stage)
    if not remote.exists(folder):
        return False
    return digest(remote.localise(folder), ignored=(CARD,)) == run.digest(stage)


def shards_are_valid(run: Run, stage: str) -> bool:
    """Whether the receipts have the recorded digest, and the folder has exactly their part files.

    A failed worker may have left further part files.
    """
    found, folder = receipts(run.folder(stage)), run.folder(stage)
    accepted = [shard for receipt in found for shard in receipt.shards]
    rejected = [shard for receipt in found for shard in receipt.rejected_shards]
    exact = _has(folder, accepted) and _has(storage.join(folder, REJECTED), rejected)
    return exact and _digest(found) == run.digest(stage)


def _has(folder: str, shards: Sequence[Shard]) -> bool:
    there = {n: size for n, size in storage.sizes(folder).items() if n.endswith(".parquet")}
    return there == {shard.file: shard.size for shard in shards}


Pairs = TypeVar("Pairs", bound=PairsRecord)


def pairs_record(kind: type[Pairs], result: Result, **more: Any) -> Pairs:
    """Make the record of a stage that makes pairs, from its job's result and further fields."""
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
    """Count the rejected rows by reason, the most frequent reason first."""
    counts = (Counter(receipt.rejected) for receipt in receipts)
    return dict(sum(counts, Counter[str]()).most_common())


def saved_rows(receipts: Iterable[Receipt]) -> dict[str, Saved]:
    """Count the rows that needed no new translation, by configuration key, such as nmt.reuse."""
    total: dict[str, Saved] = {}
    for receipt in receipts:
        for key, values in receipt.numbers.get("saved", {}).items():
            saved, before = Saved(**values), total.get(key, Saved(rows=0, tokens=0))
            total[key] = Saved(rows=before.rows + saved.rows, tokens=before.tokens + saved.tokens)
    return total


def _digest(of: Sequence[Receipt]) -> str:
    return content_key([(s.name, s.rows, s.digest) for receipt in of for s in receipt.shards])
