"""manifest.json: what a run was made from, and what every finished stage did."""

from __future__ import annotations

import fcntl
import json
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import metadata
from typing import Any

from beam_jobs.io import remote, storage
from models.errors import UserError
from pipeline.config import Config

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
    "opus-fast-mosestokenizer",
)


class Manifest:
    """The record of a run folder; written anew, whole, after every change.

    Attributes:
        stages: by name: the key of all it was made from, the digest of what it made, its counts
            and seconds. A stage that is not here, or has another key, is not finished.
    """

    def __init__(self, folder: str) -> None:
        self.path = storage.join(folder, "manifest.json")
        self.values: dict[str, Any] = {}
        if storage.exists(self.path):
            try:
                self.values = json.loads(storage.read_bytes(self.path))
                for account in self.values["stages"].values():
                    account.items()
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UserError(
                    f"{self.path}: not a manifest; remove the file, and what it describes is "
                    "checked and kept where it fits"
                ) from error
        self.values.setdefault("stages", {})

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        """Finished stages by name."""
        return self.values["stages"]

    def begin(self, config: Config, planned: Sequence[str], wanted: Sequence[str]) -> None:
        """Write down what is about to run: all stages that there are, and those wanted now."""
        self.values = {
            "config": asdict(config),
            "versions": versions(),
            "planned": list(planned),
            "wanted": list(wanted),
            "inputs": self.values.get("inputs", []),
            "stages": self.stages,
        }
        self.save()

    def start(self, stage: str) -> None:
        """Write down that a stage is under way, and since when; it stays if the work breaks off."""
        self.values["under_way"] = {"stage": stage, "since": round(time.time(), 3)}
        self.save()

    def forget(self, stages: list[str]) -> dict[str, dict[str, Any]]:
        """Take stages out: they are about to be made anew, or were made from what is."""
        taken = {stage: self.stages.pop(stage) for stage in stages if stage in self.stages}
        if taken:
            self.save()
        return taken

    def remember(self, stages: dict[str, dict[str, Any]]) -> None:
        """Put back what `forget` took out."""
        self.stages.update(stages)
        self.save()

    def finish(self, stage: str, account: dict[str, Any]) -> None:
        """Write a finished stage down; only from here on it counts as finished."""
        self.stages[stage] = account
        self.values.pop("under_way", None)
        self.save()

    def save(self) -> None:
        """Write the file."""
        text = json.dumps(self.values, indent=1, ensure_ascii=False)
        storage.write_bytes(self.path, text.encode())


def versions() -> dict[str, str]:
    """Python, and the libraries that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keep a second process out of a run folder; out of one in object storage, on this machine.

    Object stores have no locks. Two machines at work on one run do the same work twice and leave
    the same, or, with different configurations, remove each other's receipts until one gives up:
    what is there is never taken for something else.

    Raises:
        UserError: there is one at work, or the folder cannot be written.
    """
    here = remote.local_workdir(folder)
    try:
        here.mkdir(parents=True, exist_ok=True)
        stream = (here / ".lock").open("w")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror or error})") from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"{folder}: another paraloom is at work on this run") from error
        yield
