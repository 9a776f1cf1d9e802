"""A stage, and what several stages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.launch import Result
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
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import PairsRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RESOURCES, TABLE


def first_rows(shards: Sequence[Shard], columns: Sequence[str], rows: int) -> pa.Table:
    """About so many rows: the first of at most 10 part files, with all candidates of a pair."""
    filled = [shard for shard in shards if shard.rows]
    some = filled[:: -(-len(filled) // 10)]
    return pa.concat_tables(read_shard(of, columns).slice(0, rows // len(some)) for of in some)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a run."""

    name: str
    depends_on: tuple[str, ...] | Callable[[Config], tuple[str, ...]] | None = None
    """The stages that it reads, if they are not as in the table; may depend on the configuration.
    The configuration may lack some of them."""
    others: tuple[tuple[Run, str], ...] = ()  # stages of other runs that it reads
    version: int = 1  # bump when the stage makes another result from the same input
    fingerprint: Callable[[Run], Any]
    """JSON values that the result depends on besides `depends_on` and `version`."""
    make: Callable[[Run, str], StageRecord]
    """Does the work, given the run and the stage's key; returns the stage's record. The record's
    `digest` stands for the result in the keys of the stages that read it."""
    is_valid: Callable[[Run, str], bool] = lambda run, stage: True
    """Whether the files that the record describes are still there; given the run and the name. The
    default is for stages whose result is their record."""
    enabled: Callable[[Config], bool] = lambda config: True
    """Whether a configuration has this stage."""
    check: Callable[[Config], None] = lambda config: None
    """Raises a UserError, before any stage runs, if the stage cannot run."""
    copy: Callable[[Run, Run], None] | None = None
    """Copies the result of one run (first argument) to another."""
    resource: str | None = ""
    """The path below the stage's folder that scorers open; None if they open no file of it."""
    given: str = ""
    """The path there of what the key `score.NAME` may name instead; "" without such a key."""

    def dependencies(self, config: Config) -> tuple[str, ...]:
        """The stages of its run that it may read, under a configuration."""
        if callable(self.depends_on):
            return self.depends_on(config)
        return tuple(TABLE[self.name].reads.split()) if self.depends_on is None else self.depends_on


_SHARED = {
    **dict.fromkeys(("sentence_model", "cross_encoder_model", "wordnet", "spacy"), "pair_models"),
    **dict.fromkeys(("translation_model", "forward_model"), "translation_models"),
    **dict.fromkeys(("nmt", "forward_nmt"), "nmt"),
}
"""The modules of the stages that share one."""


@cache
def stages() -> dict[str, Stage]:
    """All stages, in order, loaded from their modules."""
    found = {}
    for name in TABLE:
        folder = ".resources" * (name in RESOURCES)
        folder += ".selection" * (name in ("exclude", "auto_select", "judged"))
        module = import_module(f"paraloom.pipeline.stages{folder}.{_SHARED.get(name, name)}")
        found[name] = module.STAGES[name] if name in _SHARED else module.STAGE
    return found


def needed_by_scorers(resource: str) -> Callable[[Config], bool]:
    """`Stage.enabled` of a stage that makes a resource of scorers."""
    return lambda config: any(
        name in SCORERS and SCORERS[name].resource_name == resource for name in config.score.scorers
    )


def folder_is_valid(run: Run, stage: str) -> bool:
    """`Stage.is_valid` of a stage that calls `Run.publish`: the folder has the record's digest.

    A card in it does not count: people write their own, and Paraloom adds one to encoders.
    """
    folder = run.folder(stage)
    if not remote.exists(folder):
        return False
    return digest(remote.localise(folder), ignored=(CARD,)) == run.digest(stage)


def shards_are_valid(run: Run, stage: str) -> bool:
    """`Stage.is_valid` of a pair stage: the receipts have the record's digest, and the folder has
    the files of the receipts, of their sizes, and no others, which attempts leave that outlive
    their job.
    """
    found, folder = receipts(run.folder(stage)), run.folder(stage)
    accepted = [shard for receipt in found for shard in receipt.shards]
    rejected = [shard for receipt in found for shard in receipt.rejected_shards]
    exact = _has(folder, accepted) and _has(storage.join(folder, REJECTED), rejected)
    return exact and _digest(found) == run.digest(stage)


def _has(folder: str, shards: Sequence[Shard]) -> bool:
    """Whether these are the part files of a folder, by their names and sizes."""
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
    rejected: Counter[str] = Counter()
    for receipt in receipts:
        rejected.update(receipt.rejected)
    return dict(rejected.most_common())


def saved_rows(receipts: Iterable[Receipt]) -> dict[str, Saved]:
    """Rows that are not translated, by the key of the configuration that saves them."""
    total: dict[str, Saved] = {}
    for receipt in receipts:
        for key, values in receipt.numbers.get("saved", {}).items():
            saved, before = Saved(**values), total.get(key, Saved(rows=0, tokens=0))
            total[key] = Saved(rows=before.rows + saved.rows, tokens=before.tokens + saved.tokens)
    return total


def _digest(of: Sequence[Receipt]) -> str:
    return content_key([(s.name, s.rows, s.digest) for receipt in of for s in receipt.shards])
