"""Reads and locks a run folder.

A stage is finished if its folder contains `_stage.json`, which is written last. run.json contains
the run's configuration and the stages of the last command. manifest.json combines all records.
"""

import json
import platform
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import Shard, receipts
from paraloom.beam_jobs.storage import remote
from paraloom.models import files
from paraloom.models.embeddings.options import KNOWN
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.read import expanded
from paraloom.pipeline.run.records import RunRecord, StageRecord, stage_record
from paraloom.pipeline.stages import TABLE, folder_of

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
HEADER = "run.json"


def report_path(folder: str) -> str:
    """Return the path of a run's report."""
    return storage.join(folder, "report", "index.html")


def is_run(folder: str) -> bool:
    """Whether a run has started in a folder."""
    return storage.exists(storage.join(folder, HEADER))


def read_run(folder: str) -> RunRecord:
    """Read the record of a run. The record is empty if no run has started in the folder."""
    path = storage.join(folder, HEADER)
    if not storage.exists(path):
        if storage.exists(storage.join(folder, "manifest.json")):
            raise UserError(
                f"{folder}: an earlier version of Paraloom made this run; name another folder in "
                "`run`, and run the configuration again"
            )
        return RunRecord()
    try:
        values = json.loads(storage.read_bytes(path))
        record = RunRecord(**{**values, "config": recorded_config(values["config"])})
    except (ValueError, TypeError, KeyError) as error:
        problem = str(error).partition("\n")[0]
        raise UserError(
            f"{path}: not the record of a run ({problem}); remove this file and manifest.json, "
            "and run again, which keeps valid results"
        ) from error
    found: dict[str, StageRecord] = {}
    for place in ("", *record.config.places):
        stages = read_stages(storage.join(folder, place) if place else folder)
        found |= {f"{place}/{name}" if place else name: of for name, of in stages.items()}
    record.stages = settled(found, record)
    return record


def recorded(record: RunRecord) -> RunRecord:
    """Convert the record of a run in progress to the form that `read_run` returns."""
    config = recorded_config(record.config.model_dump(mode="json"))
    return record.model_copy(update={"config": config})


def recorded_config(values: dict[str, Any]) -> Config:
    """Read a recorded configuration.

    Unless `paraloom.papers` is imported, drop the values that only this package accepts.
    """
    options, known = values["embeddings"], KNOWN[-1]
    options = {name: of for name, of in options.items() if name in known.model_fields}
    if options["task"] not in known.tasks:
        options = {"pairs": [{"paths": ["-"]}]}
    return Config.of({**values, "embeddings": options})


def settled(found: dict[str, StageRecord], record: RunRecord) -> dict[str, StageRecord]:
    """Return the finished stages of a run in their order, except the stage under way.

    If a stage is left out or its result has changed, the stages that read it are left out, too.
    """
    names = dict.fromkeys([*record.planned, *found])
    stages = {name: found[name] for name in names if name in found}
    left = {record.under_way.stage} if record.under_way else set()
    before = -1
    while before < len(left):
        before = len(left)
        left |= {
            name
            for name, of in stages.items()
            for read, digest in of.reads.items()
            if read in left or (read in stages and stages[read].digest != digest)
        }
    return {name: of for name, of in stages.items() if name not in left}


def read_stages(folder: str) -> dict[str, StageRecord]:
    """Read the records of the finished stages in a folder, in the order of the stages."""
    paths = {name: storage.join(folder, folder_of(name), STAGE_RECORD) for name in TABLE}
    if not storage.is_remote(folder):
        paths = {name: path for name, path in paths.items() if Path(path).exists()}
    records = {}
    for name, values in zip(paths, storage.several(read_json, paths.values()), strict=True):
        with suppress(ValueError):  # the file is damaged, or is missing from an object store
            records[name] = stage_record(name, values)
    return records


def read_json(path: str) -> Any:
    """Read a JSON file. Return None if it is missing or damaged."""
    with suppress(ValueError, storage.MissingError):
        return json.loads(storage.read_bytes(path))
    return None


def write_json(path: str, values: dict[str, Any]) -> None:
    """Write a JSON file, unless it already has this content."""
    data = json.dumps(values, indent=1, ensure_ascii=False).encode()
    with suppress(storage.MissingError):
        if storage.read_bytes(path) == data:
            return
    storage.write_bytes(path, data)


def shards_of(run: str, stage: str) -> list[Shard]:
    """Return the part files of a stage in their order. `run` is the folder of the run."""
    return shards_in(storage.join(run, folder_of(stage)))


def shards_in(folder: str) -> list[Shard]:
    """Return a stage's part files in their order. `folder` is the stage's folder."""
    return [shard for receipt in receipts(folder) for shard in receipt.shards]


def corpus_in(path: str) -> str:
    """Return the corpus folder of a run or of a named selection, or any other path as it is.

    Raise a UserError if `path` is a run whose corpus is not finished.
    """
    corpus = storage.join(path, folder_of("select"))
    if storage.exists(storage.join(corpus, STAGE_RECORD)):
        return corpus
    if is_run(path):
        raise UserError(
            f"{path}: the run has no corpus yet; name the folder of a stage, such as score/"
        )
    return path


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def locked(folder: str) -> AbstractContextManager[None]:
    """Prevent a second process on this machine from working in a run folder.

    Two machines may share a run, because each accepts only results with the keys that it expects.
    """
    here = remote.local_workdir(folder) / ".lock"
    return files.locked(here, f"{folder}: another paraloom is running here; wait for it")


def with_selections(config: Config) -> Config:
    """Add the named selections of earlier commands, except selections that are null in `config`."""
    before = read_run(config.run).config.select.named
    if not (before or config.select.named):
        return config
    section = config.written["select"]
    recorded = {name: of and of.model_dump() for name, of in before.items()}
    shown = {**recorded, **section.get("named", {})}
    try:
        kept = {n: of for n, of in recorded.items() if n not in config.select.named}
        every = {**recorded, **expanded(kept, "select.named"), **config.select.named}
        named = {name: of for name, of in every.items() if of is not None}
        merged = config.replace(select=config.select.replace(named=named))
    except ValueError as error:
        raise UserError(f"{config.run}: {error}; select.named.NAME=null removes NAME") from error
    shown = {name: shown[name] for name in named}
    merged._written = {**config.written, "select": {**section, "named": shown}}
    return merged


def started(folder: str) -> RunRecord:
    """Read the record of a run. Raise a UserError if no run has started in the folder."""
    record = read_run(folder)
    if not is_run(folder):
        raise UserError(f"{folder}: no run here; the folder has no {HEADER}")
    return record


def finished(folder: str) -> RunRecord:
    """Read the record of a run. Raise a UserError if no stage of the run is finished."""
    record = read_run(folder)
    if not record.stages:
        raise UserError(f"{folder}: no run with a finished stage here")
    return record


def restrict(record: RunRecord, names: Iterable[str]) -> RunRecord:
    """Return the record with only the stages in `names`."""
    found = {name: record.stages[name] for name in names if name in record.stages}
    return record.model_copy(update={"stages": found})


def current(record: RunRecord) -> RunRecord:
    """Return the record with only the stages that the present configuration made."""
    names = record.planned or record.stages
    return restrict(record, [n for n in names if n not in record.outdated])


def outdated(record: RunRecord) -> list[str]:
    """List the planned stages whose results an earlier configuration made."""
    names = record.planned or record.stages
    return [name for name in names if name in record.stages and name in record.outdated]


def as_made(record: RunRecord) -> RunRecord:
    """Return the record with the configuration, versions and stages that made the run's corpus."""
    made = record.stages.get("select")
    if made is None or "select" not in record.outdated:
        return current(record)
    read, names = {"select"}, set[str]()
    while read != names:
        names = set(read)
        read |= {name for n in names if n in record.stages for name in record.stages[n].reads}
    kept = [n for n in record.stages if n in names or n not in record.outdated]
    config = recorded_config({**made.config, "run": record.config.run})  # the run may have moved
    update = {"config": config, "versions": made.versions}
    return restrict(record, kept).model_copy(update=update)


def check_current(folder: str, record: RunRecord, stage: str, command: str) -> None:
    """Raise a UserError if a stage is outdated. The error names the `command` to run."""
    if stage in outdated(record):
        raise UserError(
            f"{folder}: {stage} is outdated, because an earlier configuration made it; "
            f"`paraloom {command} --config FILE` makes it again"
        )


def check_selection(folder: str, known: Collection[str], name: str) -> str:
    """Return the subfolder of a named selection. The name must be in `known` or empty."""
    if name and name not in known:
        names = ", ".join(known) or "the corpus"
        remedy = "`paraloom select --config FILE --name NAME --set select.KEY=VALUE` makes one"
        raise UserError(f"{folder}: the run has no selection {name!r}, only {names}; {remedy}")
    return f"selections/{name}" if name else ""


def finished_corpus(folder: str, record: RunRecord, selection: str = "") -> RunRecord:
    """Return the record of a run or a named selection. The corpus must be finished and current."""
    known = record.config.select.selections
    place = check_selection(folder, known, selection if record.stages else "")
    stage = record.derived(place).path("select")
    check_current(folder, record, stage, "select")
    if stage not in (now := current(record)).stages:
        remedy = "`paraloom corpus` or `paraloom select` makes it"
        raise UserError(f"{folder}: no run with a {folder_of(stage)} here; {remedy}")
    return now.derived(place)
