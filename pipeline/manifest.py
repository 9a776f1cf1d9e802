"""manifest.json of a run folder, and the lock of the folder; the content is in `records`."""

import json
import platform
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.beam_jobs.storage import remote
from paraloom.models import files
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.recorded import Written
from paraloom.pipeline.config.selection import NamedSelection
from paraloom.pipeline.names import RANKED, SELECTED, folder_of, stage_path
from paraloom.pipeline.records import ConfigRecord, RunRecord, StageRecord, UnderWay

_LIBRARIES = (
    "paraloom",
    "apache-beam",
    "torch",
    "fairseq-fixed",
    "ctranslate2",
    "sentencepiece",
    "pyarrow",
    "numpy",
    "sacrebleu",
    "sacremoses",
    "opus-fast-mosestokenizer",
)


class Manifest:
    """manifest.json of a run folder; written anew, whole, after every change.

    A stage that is not in `record.stages`, or has another key there, is not finished.
    """

    def __init__(self, folder: str) -> None:
        self.path = storage.join(folder, "manifest.json")
        self.record = RunRecord(stages={})
        self._written = Written({})
        if storage.exists(self.path):
            try:
                self.record = RunRecord.model_validate_json(storage.read_bytes(self.path))
            except ValueError as error:
                raise UserError(
                    f"{self.path}: not a manifest; remove the file: results that are still valid "
                    "are not made again"
                ) from error
            if "corpus" in {*self.record.planned, *self.stages}:
                raise UserError(
                    f"{folder}: a run of version 0.2, whose files have other names; run the "
                    "configuration again with another `run`"
                )

    @property
    def stages(self) -> dict[str, StageRecord]:
        """Finished stages by name."""
        return self.record.stages

    def begin(
        self, config: Config, planned: list[str], wanted: list[str], outdated: Iterable[str]
    ) -> None:
        """Record what is about to run: all stages of the configuration, and those wanted now.

        Finished stages keep what made them, if it was something else: see `StageRecord.config`.
        `outdated` are the finished stages that are not of this configuration; the recorded one does
        not tell, since it leaves out arguments and variables.
        """
        before, self._written = self.record, config.written
        self.record = RunRecord(
            config=ConfigRecord.model_validate(config.written.recorded()),
            versions=versions(),
            planned=planned,
            wanted=wanted,
            inputs=before.inputs,
            stages=self.stages,
        )
        for stage in map(self.stages.__getitem__, outdated):
            stage.config = stage.config or before.config
        for stage in self.stages.values():
            if before.versions != self.record.versions and not stage.versions:
                stage.versions = before.versions
        self.save()

    def confirm(self, stage: str) -> None:
        """Record that a finished stage is of the present configuration."""
        if self.stages[stage].config is not None:
            self.finish(stage, self.stages[stage])

    def start(self, stage: str) -> None:
        """Record that a stage is under way, and since when; this stays if the work is killed."""
        self.record.under_way = UnderWay(stage=stage, since=round(time.time(), 3))
        self.save()

    def submitted(self, job: RemoteJob) -> None:
        """Record a job on which the stage under way waits."""
        if self.record.under_way:
            self.record.under_way.jobs = [*self.record.under_way.jobs, job]
            self.save()

    def forget(self, stages: Iterable[str]) -> dict[str, StageRecord]:
        """Remove the records of stages that are about to be made anew, and return them."""
        taken = {stage: self.stages.pop(stage) for stage in stages if stage in self.stages}
        if taken:
            self.save()
        return taken

    def remember(self, stages: Mapping[str, StageRecord]) -> None:
        """Put back what `forget` removed."""
        self.stages.update(stages)
        self.save()

    def finish(self, stage: str, record: StageRecord) -> None:
        """Record a finished stage; only from here on it counts as finished."""
        self.stages[stage] = record = record.model_copy()
        record.config = None
        record.model_fields_set.discard("config")
        if self.record.under_way and self.record.under_way.jobs:
            record.jobs = self.record.under_way.jobs
        self.record.under_way = None
        self.record.model_fields_set.discard("under_way")
        self.save()

    def save(self) -> None:
        """Write the file."""
        values = self._written.by_names(self.record.json_values())
        text = json.dumps(values, indent=1, ensure_ascii=False)
        storage.write_bytes(self.path, text.encode())


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keep a second process out of a run folder; for object storage, one on this machine.

    Object stores have no locks. Two machines that work on one run do the same work twice with the
    same result, or, with different configurations, remove each other's receipts until one of them
    gives up. Results are never mixed up: each is known by its key.
    """
    here = remote.local_workdir(folder) / ".lock"
    with files.locked(here, f"{folder}: another paraloom is at work on this run"):
        yield


def with_selections(config: Config) -> Config:
    """The configuration with the named selections that earlier commands gave its run, too.

    One that the configuration sets to null is forgotten.
    """
    recorded = Manifest(config.run).record.config.select.named
    if not (recorded or config.select.named):
        return config
    written = config.written
    section = written.keys["select"]
    shown = {n: of for n, of in {**recorded, **section.get("named", {})}.items() if of is not None}
    try:
        named = {n: config.select.named.get(n) or NamedSelection(**of) for n, of in shown.items()}
        merged = config.replace(select=config.select.replace(named=named))
    except ValueError as error:
        raise UserError(f"{config.run}: {error}; select.named.NAME=null forgets it") from error
    merged._written = replace(written, keys={**written.keys, "select": {**section, "named": shown}})
    return merged


def started(folder: str) -> RunRecord:
    """The record of a run that has begun."""
    record = Manifest(folder).record
    if "config" not in record.model_fields_set:
        raise UserError(f"{folder}: no run here: it has no manifest.json")
    return record


def finished(folder: str) -> RunRecord:
    """The record of a run that has finished a stage."""
    record = Manifest(folder).record
    if not record.stages:
        raise UserError(f"{folder}: no run here that has finished a stage")
    return record


def restrict(record: RunRecord, names: Iterable[str]) -> RunRecord:
    """The record with only these stages: an earlier configuration may have left others."""
    found = {name: record.stages[name] for name in names if name in record.stages}
    return record.model_copy(update={"stages": found})


def current(record: RunRecord) -> RunRecord:
    """The record with the finished stages of the run's present configuration, in their order."""
    stale = outdated(record)
    return restrict(record, [n for n in record.planned or record.stages if n not in stale])


def as_made(record: RunRecord) -> RunRecord:
    """The record with the configuration, the versions and the stages that made its corpus; without
    one, as `current` gives it."""
    made = record.stages.get("select") or StageRecord()
    if made.config is None:
        return current(record)
    kept = {n: of for n, of in record.stages.items() if of.config in (None, made.config)}
    more = {"versions": made.versions} if made.versions else {}
    return record.model_copy(update={"config": made.config, "stages": kept, **more})


def outdated(record: RunRecord) -> list[str]:
    """The finished stages that an earlier configuration of the run made."""
    names = record.planned or record.stages
    return [n for n in names if n in record.stages and record.stages[n].config is not None]


def check_current(folder: str, record: RunRecord, stage: str, command: str) -> None:
    """Check that a stage of the run in `folder`, if finished, is of its present configuration;
    `command` makes it."""
    if stage in outdated(record):
        raise UserError(
            f"{folder}: {stage} is of an earlier configuration than the last command had; "
            f"`paraloom {command} --config FILE` makes it again"
        )


def selection_view(record: RunRecord, name: str) -> RunRecord:
    """The record as if a named selection were the run's only one; "" leaves the run's own."""
    others = {n: of for n, of in record.stages.items() if not n.startswith("selections/")}
    if not name:
        return record.model_copy(update={"stages": others})
    own = {n: record.stages[p] for n in SELECTED if (p := stage_path(n, name)) in record.stages}
    stages = {n: of for n, of in others.items() if n not in SELECTED} | own
    config = record.config
    select = config.select.model_copy(update=config.select.named[name])
    config = config.model_copy(update={"select": select, "run": f"{config.run}-{name}"})
    return record.model_copy(update={"config": config, "stages": stages})


def check_selection(folder: str, known: Collection[str], name: str) -> None:
    """Check that a run has a named selection; "" stands for its own."""
    if name and name not in known:
        names = ", ".join(known) or "none"
        remedy = "`paraloom select --config FILE --name NAME --set select.KEY=VALUE` makes one"
        raise UserError(f"{folder}: it has no selection {name!r}; there are {names}; {remedy}")


def finished_corpus(folder: str, record: RunRecord, selection: str = "") -> str:
    """The stage of a run's corpus, or of a named selection's, which must be finished."""
    check_selection(folder, record.config.select.named, selection)
    stage = stage_path("select", selection)
    check_current(folder, record, stage, "select")
    if stage not in current(record).stages:
        remedy = "`paraloom corpus` or `paraloom select` makes it"
        raise UserError(f"{folder}: no run here that has a {folder_of(stage)}; {remedy}")
    return stage


def best_round(stages: Mapping[str, StageRecord]) -> int:
    """The round that the run's corpus was copied from; 0 if there was one round only."""
    corpus = stages.get("select")
    number = corpus.round or 0 if corpus else 0
    return number if stage_path("select", number) in stages else 0


def ranked_stage(stages: Mapping[str, StageRecord]) -> str:
    """The stage with the pairs that the run's corpus was selected from."""
    return stage_path(RANKED, best_round(stages))
