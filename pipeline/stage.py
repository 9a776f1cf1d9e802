"""A run, a stage, and what several stages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import Bitext, find_bitext
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import (
    REJECTED,
    Receipt,
    Saved,
    Shard,
    content_key,
    read_shard,
    read_whole,
    receipts,
)
from paraloom.beam_jobs.select import Criteria
from paraloom.beam_jobs.storage import remote
from paraloom.beam_jobs.storage.digests import file_digest
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.exclusion import Exclusion
from paraloom.models import hub
from paraloom.models.errors import UserError
from paraloom.models.files import CARD, digest
from paraloom.models.languages import ENGLISH
from paraloom.models.printing import not_text
from paraloom.models.scorers import ENCODER, SCORERS
from paraloom.pipeline.config.input import InputOptions
from paraloom.pipeline.config.options import Config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.names import folder_of, stage_path
from paraloom.pipeline.records import Kind, PairsRecord, StageRecord


@dataclass
class Run:
    """A run at work: its configuration, its manifest, and the results of its stages."""

    config: Config
    manifest: Manifest
    arguments: Sequence[str] = ()  # for Beam
    round: int = 0  # the round that stage names refer to; 0 if there is only one, or none
    selection: str = ""  # the named selection that they refer to; "" if to none

    def at(self, number: int) -> Run:
        """The same run, with stage names that refer to another round."""
        return self if number == self.round else replace(self, round=number)

    def selected(self, name: str) -> Run:
        """The same run, with stage names and criteria of a named selection; "" leaves it."""
        return replace(self, selection=name, config=self.config.selected(name)) if name else self

    def seen_by(self, stage: Stage) -> Run:
        """The same run, with stage names that refer to the round or the selection of a stage."""
        return self.at(stage.round).selected(stage.selection)

    def path(self, stage: str) -> str:
        """The name of a stage in the manifest."""
        return stage_path(stage, self.selection or self.round)

    def digest(self, stage: str) -> str:
        """The digest of a finished stage's result."""
        return self.manifest.stages[self.path(stage)].digest

    def record(self, kind: type[Kind], stage: str = "") -> Kind:
        """The record of a finished stage, as `RunRecord.find` gives it."""
        name = stage or kind.stage
        found = self.manifest.record.find(kind, self.path(name))
        assert found is not None, f"{name} is not finished"
        return found

    def folder(self, stage: str) -> str:
        """The folder of a stage's files."""
        return storage.join(self.config.run, folder_of(self.path(stage)))

    def shards(self, stage: str) -> list[Shard]:
        """The part files of a finished pair stage, in order."""
        return shards_of(self.config.run, self.path(stage))

    def local_folder(self, stage: str) -> Path:
        """The folder on this machine in which a stage writes; `folder` unless that is remote."""
        return remote.local_workdir(self.config.run) / folder_of(self.path(stage))

    def publish(self, stage: str) -> str:
        """Upload a stage's `local_folder` if the run is remote; return the folder's digest."""
        total = digest(self.local_folder(stage))
        remote.publish(self.local_folder(stage), self.folder(stage))
        return total

    def local_files(self, stage: str) -> list[str]:
        """Local copies of the part files of a finished pair stage, with checksums verified."""

        def local(shard: Shard) -> str:
            path = self.local_folder(stage) / shard.file
            if not path.exists() or storage.digest(storage.read_bytes(str(path))) != shard.digest:
                storage.write_bytes(str(path), read_whole(shard))
            return str(path)

        return storage.several(local, self.shards(stage))

    @property
    def input(self) -> InputOptions:
        """The bitext of a run that has one."""
        assert self.config.input is not None
        return self.config.input

    @property
    def pairs_stage(self) -> str:
        """The stage with the pairs to translate."""
        return "pivot" if self.config.is_plain_text else "ingest"

    @property
    def candidates_stage(self) -> str:
        """The stage with all candidates of the pairs."""
        return "back_translate" if self.config.generators is None else "generate"

    @cached_property
    def bitexts(self) -> list[Bitext]:
        """The bitext with the digests of its files."""
        found = find_bitext(self.input.format, self.input.paths, self.input.layout)
        for condition in (*self.input.conditions, *self.criteria().where):
            if condition.column in self.input.keep:
                condition.check_type(found[0].kept.field(condition.column).type)
        paths = [path for bitext in found for path in bitext.paths]
        for path in paths:
            if problem := not_text(path):
                raise UserError(f"{path}: its name {problem}; rename it")
        sha256 = dict(zip(paths, storage.several(file_digest, paths), strict=True))
        return [replace(b, sha256=tuple(sha256[path] for path in b.paths)) for b in found]

    @property
    def language(self) -> str:
        """The short code of the language of references and translations."""
        return self.config.language

    def with_language(self, values: Any) -> Any:
        """Add the language to the values of a key, except English."""
        return values if self.language == ENGLISH else [values, self.language]

    @property
    def scorers(self) -> list[str]:
        """The scores of the pairs in this round."""
        return [*self.config.score.names, *([ENCODER] if self.round > 1 else [])]

    @property
    def ranked_by(self) -> list[str]:
        """The scores that this round may select pairs by."""
        return [ENCODER] if self.round > 1 else self.config.score.names

    @property
    def model(self) -> str:
        """The folder of the translation model."""
        return self.config.nmt.model or self.folder("nmt")

    def criteria(self, by: str = "", deciles: Sequence[int] | None = None) -> Criteria:
        """The criteria of `select` for these deciles of a score; None takes all deciles."""
        options = self.config.select
        return Criteria(
            by=by,
            deciles=None if deciles is None else tuple(sorted(set(deciles))),
            max_tokens=options.max_tokens,
            size=options.size,
            seed=self.config.seed,
            where=tuple(Predicate.parse(text) for text in options.where),
            per_source=options.per_source,
            max_overlap=options.max_overlap,
            language=self.language,
            exclude=self.exclusion,
            generators=bool(self.config.generators),
            rank="translation_score" if self.config.generators and self.config.has_model else None,
            per_generator=options.per_generator,
        )

    @property
    def exclusion(self) -> Exclusion | None:
        """The evaluation sentences that no pair may hold, once they are read."""
        options = self.config.select
        if not options.exclude or (read := self.manifest.stages.get("exclude")) is None:
            return None
        model, bound = excluding_model(self.config), options.exclude_similarity
        model, folder = model and hub.pinned(model), self.folder("exclude")
        return Exclusion(folder=folder, digest=read.digest, similarity=bound, model=model)


def excluding_model(config: Config) -> str | None:
    """The model of `select.exclude_similarity`, if that is set."""
    if not config.select.exclude or config.select.exclude_similarity is None:
        return None
    if name := config.score.sentence_model:
        return name
    raise UserError("score.sentence_model: is missing; select.exclude_similarity needs it")


def shards_of(run: str, stage: str) -> list[Shard]:
    """The part files of a stage of the run in a folder, in order."""
    found = receipts(storage.join(run, folder_of(stage)))
    return [shard for receipt in found for shard in receipt.shards]


def first_rows(shards: Sequence[Shard], columns: Sequence[str], rows: int) -> pa.Table:
    """About so many rows: the first of at most 10 part files, with all candidates of a pair."""
    filled = [shard for shard in shards if shard.rows]
    some = filled[:: -(-len(filled) // 10)]
    return pa.concat_tables(read_shard(of, columns).slice(0, rows // len(some)) for of in some)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a run."""

    name: str  # as `stage_path` gives it
    round: int = 0  # the round that it belongs to; 0 if to none
    selection: str = ""  # the named selection that it belongs to; "" if to none
    depends_on: tuple[str, ...] | Callable[[Config], tuple[str, ...]] = ()
    """Names of the stages it reads, if the configuration has them; may depend on the
    configuration."""
    version: int = 1  # bump when the stage makes another result from the same input
    fingerprint: Callable[[Run], Any]
    """JSON values that the result depends on besides `depends_on` and `version`."""
    make: Callable[[Run, str], StageRecord]
    """Does the work, given the run and the stage's key; returns the stage's record. The record's
    `digest` stands for the result in the keys of the stages that read it."""
    is_valid: Callable[[Run, str], bool] = lambda run, stage: True
    """Whether the files that the record describes are still there; given the run and `kind`. The
    default is for stages whose result is their record."""
    enabled: Callable[[Config], bool] = lambda config: True
    """Whether a configuration has this stage."""
    check: Callable[[Config], None] = lambda config: None
    """Raises a UserError, before any stage runs, if the stage cannot run."""
    copy: Callable[[Run, Run], None] | None = None
    """Copies the result of one round (first argument) to another."""
    resource: str | None = ""
    """The path below the stage's folder that scorers open; None if they open no file of it."""
    given: str = ""
    """The path there of what the key `score.NAME` may name instead; "" without such a key."""

    @property
    def kind(self) -> str:
        """Its name in any round and selection."""
        return self.name.removeprefix(self.prefix)

    @property
    def prefix(self) -> str:
        """What the names of its round or of its selection begin with."""
        return f"selections/{self.selection}/" if self.selection else f"rounds/{self.round}/"

    def dependencies(self, config: Config) -> tuple[str, ...]:
        """`depends_on` under a configuration."""
        return self.depends_on(config) if callable(self.depends_on) else self.depends_on


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
