"""Writes the records of a run while it runs: run.json, manifest.json, and each `_stage.json`."""

import os
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.models.files import STAGE_RECORD
from paraloom.pipeline.config import Config
from paraloom.pipeline.pages.shown import without_folders
from paraloom.pipeline.run.folder import HEADER, settled, versions, write_json
from paraloom.pipeline.run.plan import PlannedStage
from paraloom.pipeline.run.records import RunRecord, StageRecord, UnderWay
from paraloom.pipeline.run.run import Run


@dataclass
class Journal:
    """Writes the records of a run."""

    run: Run
    record: RunRecord = field(default_factory=RunRecord)

    def begin(
        self, config: Config, planned: list[str], wanted: list[str], outdated: Iterable[str]
    ) -> None:
        """Record the configuration and its stages before the first stage runs.

        `outdated` contains the stages whose keys have changed. They are recorded, because a reader
        of the record may lack the files and environment variables from which keys are computed.
        """
        self.record = RunRecord(
            config=Config.of(config.written),
            versions=versions(),
            planned=planned,
            wanted=wanted,
            outdated=sorted(outdated),
        )
        self.save()

    def confirm(self, step: PlannedStage) -> None:
        """Record that a finished stage is up to date."""
        if step.path in self.record.outdated:
            self.record.outdated.remove(step.path)
            self.save()

    def start(self, step: PlannedStage) -> None:
        """Record that a stage has started."""
        step.run.records.pop(step.stage.name, None)
        storage.remove(storage.join(step.run.folder(step.stage.name), STAGE_RECORD))
        since, launcher = round(time.time(), 3), f"{socket.gethostname()}:{os.getpid()}"
        self.record.under_way = UnderWay(stage=step.path, since=since, launcher=launcher)
        self.save()

    def submitted(self, job: RemoteJob) -> None:
        """Record a job that the running stage has submitted to a service."""
        if self.record.under_way:
            self.record.under_way.jobs = [*self.record.under_way.jobs, job]
            self.save()

    def finish(self, step: PlannedStage, record: StageRecord) -> None:
        """Record that a stage has finished, and write the stage's record."""
        record = record.model_copy()
        record.config = self.record.config.model_dump(mode="json")
        record.versions = record.versions or self.record.versions  # a copied result has its own
        if step.stage.name == "embeddings":  # remove paths, because people share this folder
            record.config = without_folders(record.config)
        read = step.reads().values()
        record.reads = {r.path(name): r.digest(name) for r, name in read if name in r.records}
        if self.record.under_way and self.record.under_way.jobs:
            record.jobs = self.record.under_way.jobs
        path = storage.join(step.run.folder(step.stage.name), STAGE_RECORD)
        write_json(path, record.json_values())
        step.run.records[step.stage.name] = record
        self.record.under_way = None
        self.record.outdated = [name for name in self.record.outdated if name != step.path]
        self.save()

    def save(self) -> None:
        """Write run.json and manifest.json."""
        folder, record = self.run.config.run, self.record
        runs = (self.run, *self.run.children.values())
        found = {run.path(name): of for run in runs for name, of in run.records.items()}
        record.stages = settled(found, record)
        write_json(storage.join(folder, HEADER), record.header())
        write_json(storage.join(folder, "manifest.json"), record.roll_up())
