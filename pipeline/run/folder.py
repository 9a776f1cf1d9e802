"""A run folder: run.json, the `_stage.json` of each finished stage, manifest.json, and the lock.

A stage is finished if its folder has a `_stage.json`, which is written last; readers of data sets
skip files that begin with an underscore. run.json has the run's configuration and the stages that
the last command wanted. manifest.json combines all these records in one file for readers.
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
    """The path of the report of the run in `folder`."""
    return storage.join(folder, "report", "index.html")


def is_run(folder: str) -> bool:
    """Whether a run has begun in a folder."""
    return storage.exists(storage.join(folder, HEADER))


def read_run(folder: str) -> RunRecord:
    """The record of the run in a folder; an empty record if no run has begun there."""
    path = storage.join(folder, HEADER)
    if not storage.exists(path):
        if storage.exists(storage.join(folder, "manifest.json")):
            raise UserError(
                f"{folder}: a run of an earlier version; run the configuration again with another "
                "`run`"
            )
        return RunRecord()
    try:
        values = json.loads(storage.read_bytes(path))
        record = RunRecord(**{**values, "config": recorded_config(values["config"])})
    except (ValueError, TypeError, KeyError) as error:
        problem = str(error).partition("\n")[0]
        raise UserError(
            f"{path}: not the record of a run ({problem}); remove the file, and run again: valid "
            "results are kept"
        ) from error
    found: dict[str, StageRecord] = {}
    for place in ("", *record.config.places):
        stages = read_stages(storage.join(folder, place) if place else folder)
        found |= {f"{place}/{name}" if place else name: of for name, of in stages.items()}
    order = [*record.planned, *found]
    record.stages = settled({n: found[n] for n in dict.fromkeys(order) if n in found}, record)
    return record


def recorded(record: RunRecord) -> RunRecord:
    """The record of a run at work, in the form that `read_run` returns."""
    config = recorded_config(record.config.model_dump(mode="json"))
    return record.model_copy(update={"config": config})


def recorded_config(values: dict[str, Any]) -> Config:
    """A recorded configuration, without tasks and keys that only `paraloom.papers` knows."""
    options, known = values["embeddings"], KNOWN[-1]
    options = {name: of for name, of in options.items() if name in known.model_fields}
    if options["task"] not in known.tasks:
        options = {"pairs": [{"paths": ["-"]}]}
    return Config.of({**values, "embeddings": options})


def settled(stages: dict[str, StageRecord], record: RunRecord) -> dict[str, StageRecord]:
    """Leave out the stage under way, and stages made from a result that has changed since."""
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
    """The records of the finished stages in a folder, in order."""
    paths = {name: storage.join(folder, folder_of(name), STAGE_RECORD) for name in TABLE}
    if not storage.is_remote(folder):
        paths = {name: path for name, path in paths.items() if Path(path).exists()}

    def read(name: str) -> StageRecord | None:
        with suppress(ValueError):  # the file is no record of a stage
            values = read_json(paths[name])
            return None if values is None else stage_record(name, values)
        return None

    found = zip(paths, storage.several(read, paths), strict=True)
    return {name: record for name, record in found if record}


def read_json(path: str) -> Any:
    """The values of a record; None if it is missing or damaged."""
    with suppress(ValueError, storage.MissingError):
        return json.loads(storage.read_bytes(path))
    return None


def write_json(path: str, values: dict[str, Any]) -> None:
    """Write a record, unless the file has this content already."""
    data = json.dumps(values, indent=1, ensure_ascii=False).encode()
    with suppress(storage.MissingError):
        if storage.read_bytes(path) == data:
            return
    storage.write_bytes(path, data)


def shards_of(run: str, stage: str) -> list[Shard]:
    """The part files of a stage, in order; `run` is the run's folder."""
    found = receipts(storage.join(run, folder_of(stage)))
    return [shard for receipt in found for shard in receipt.shards]


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def locked(folder: str) -> AbstractContextManager[None]:
    """Keep a second process on this machine out of a run folder.

    Object stores have no locks. Two machines that work on one run there do the same work twice with
    the same result, or, with different configurations, remove each other's receipts until one of
    them gives up. Results are never mixed up, because each result has its key.
    """
    here = remote.local_workdir(folder) / ".lock"
    return files.locked(here, f"{folder}: another paraloom is running here; wait for it")


def with_selections(config: Config) -> Config:
    """Add to the configuration the run's named selections from earlier commands, except
    selections that `config` sets to null."""
    before = read_run(config.run).config.select.named
    if not (before or config.select.named):
        return config
    section = config.written["select"]
    recorded = {name: of and of.model_dump() for name, of in before.items()}
    shown = {**recorded, **section.get("named", {})}
    try:
        named = {n: of for n, of in {**before, **config.select.named}.items() if of is not None}
        merged = config.replace(select=config.select.replace(named=named))
    except ValueError as error:
        raise UserError(f"{config.run}: {error}; select.named.NAME=null removes it") from error
    shown = {name: shown[name] for name in named}
    merged._written = {**config.written, "select": {**section, "named": shown}}
    return merged


def started(folder: str) -> RunRecord:
    """The record of a run, for commands that follow it; a UserError if no run has begun."""
    if not is_run(folder):
        read_run(folder)
        raise UserError(f"{folder}: no run here: it has no {HEADER}")
    return read_run(folder)


def finished(folder: str) -> RunRecord:
    """The record of a run, for commands that show results; a UserError if no stage is finished."""
    record = read_run(folder)
    if not record.stages:
        raise UserError(f"{folder}: no run with a finished stage here")
    return record


def restrict(record: RunRecord, names: Iterable[str]) -> RunRecord:
    """The record with these stages only; an earlier configuration may have left others."""
    found = {name: record.stages[name] for name in names if name in record.stages}
    return record.model_copy(update={"stages": found})


def current(record: RunRecord) -> RunRecord:
    """The record with the finished stages of the run's present configuration, in their order; use
    it where results of an earlier configuration would mislead."""
    names = record.planned or record.stages
    return restrict(record, [n for n in names if n not in record.outdated])


def outdated(record: RunRecord) -> list[str]:
    """The finished stages of the present configuration that an earlier configuration made."""
    names = record.planned or record.stages
    return [name for name in names if name in record.stages and name in record.outdated]


def as_made(record: RunRecord) -> RunRecord:
    """The record with the configuration, versions and stages that made its corpus, even if they are
    outdated; use it to describe this corpus. The same as `current` if no corpus is outdated."""
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
    """Check that the present configuration made a finished stage of the run in `folder`; the error
    names the `command` that makes it again."""
    if stage in outdated(record):
        raise UserError(
            f"{folder}: {stage} is outdated, made by an earlier configuration; "
            f"`paraloom {command} --config FILE` makes it again"
        )


def check_selection(folder: str, known: Collection[str], name: str) -> str:
    """Check that a run has a named selection; returns its place below the run, "" if not named."""
    if name and name not in known:
        names = ", ".join(known) or "the corpus"
        remedy = "`paraloom select --config FILE --name NAME --set select.KEY=VALUE` makes one"
        raise UserError(f"{folder}: no selection {name!r} here, only {names}; {remedy}")
    return f"selections/{name}" if name else ""


def finished_corpus(folder: str, record: RunRecord, selection: str = "") -> RunRecord:
    """The record of a run, or of a named selection, whose corpus must be finished."""
    place = check_selection(folder, record.config.select.selections, selection)
    stage = record.derived(place).path("select")
    check_current(folder, record, stage, "select")
    if stage not in (now := current(record)).stages:
        remedy = "`paraloom corpus` or `paraloom select` makes it"
        raise UserError(f"{folder}: no run with a {folder_of(stage)} here; {remedy}")
    return now.derived(place)
