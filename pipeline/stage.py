"""What a run and its stages are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from beam_jobs.io import remote, storage
from beam_jobs.io.shards import Shard, read_whole, receipts
from models.files import digest
from models.scorers import ENCODER
from pipeline.config import Config, InputOptions
from pipeline.manifest import Manifest
from pipeline.records import Kind

PAIR_STAGES = ("ingest", "back_translate", "score", "bucket", "corpus")
"""The stages whose files are pairs, in their order."""

RESULTS = ("corpus", "embeddings", "evaluate")
"""The stages that every round has a result of; the best one's is the run's."""

RANKING = ("score", "bucket", "choice")
"""The stages before them that a round after the first has for itself."""


@dataclass
class Run:
    """A run at work: its configuration, its record, and what its stages left so far.

    Attributes:
        round: whose stages and files their names mean; 0 where there is one round, or none.
    """

    config: Config
    manifest: Manifest
    arguments: Sequence[str] = ()  # for Beam
    inputs: list[dict[str, Any]] = field(default_factory=list)
    round: int = 0

    def at(self, number: int) -> Run:
        """The same run, seen from a round."""
        return self if number == self.round else replace(self, round=number)

    def digest(self, stage: str) -> str:
        """The digest of what a finished stage made."""
        return self.manifest.stages[stage_path(stage, self.round)].digest

    def record(self, kind: type[Kind]) -> Kind:
        """The record of a finished stage, by its class."""
        found = self.manifest.record.find(kind, stage_path(kind.kind, self.round))
        assert found is not None, f"{kind.kind} is not finished"
        return found

    def folder(self, stage: str) -> str:
        """Where a stage leaves its files."""
        return storage.join(self.config.run, stage_path(stage, self.round))

    def shards(self, stage: str) -> list[Shard]:
        """The part files of a finished stage, in order."""
        return [shard for receipt in receipts(self.folder(stage)) for shard in receipt.shards]

    def made(self, stage: str) -> Path:
        """Where the folder of a stage is made: in its place, or for an object store beside it."""
        return remote.local_workdir(self.config.run) / stage_path(stage, self.round)

    def publish(self, stage: str) -> str:
        """Bring the folder that was made to where the run is; its digest."""
        total = digest(self.made(stage))
        remote.publish(self.made(stage), self.folder(stage))
        return total

    def local_files(self, stage: str) -> list[str]:
        """The part files of a finished stage on this machine, for what trains on them.

        Raises:
            DamagedError: one is not what was written.
        """
        if not storage.is_remote(self.config.run):
            return self.sound_files(stage)
        found = []
        for shard in self.shards(stage):
            path = self.made(stage) / f"{shard.name}.parquet"
            if not path.exists() or storage.digest(path.read_bytes()) != shard.digest:
                storage.write_bytes(str(path), read_whole(shard))
            found.append(str(path))
        return found

    def sound_files(self, stage: str) -> list[str]:
        """The part files of a finished stage, for readers that do not look at checksums.

        Raises:
            DamagedError: one is not what was written.
        """
        shards = self.shards(stage)
        for shard in shards:
            read_whole(shard)
        return [shard.path for shard in shards]

    @property
    def input(self) -> InputOptions:
        """The bitext, of a run that has one."""
        assert self.config.input is not None
        return self.config.input

    @property
    def scorers(self) -> list[str]:
        """The scores that pairs have."""
        return [*self.config.score.scorers, *([ENCODER] if self.round > 1 else [])]

    @property
    def ranked_by(self) -> list[str]:
        """The scores that pairs may be selected by, if the run is to choose one."""
        return [ENCODER] if self.round > 1 else self.config.score.scorers

    @property
    def translates_with_own_model(self) -> bool:
        """Whether the run trains the model that it translates with."""
        return self.config.nmt.model is None

    @property
    def model(self) -> str:
        """The model folder that translates."""
        return self.config.nmt.model or self.folder("nmt")


def stage_path(stage: str, number: int) -> str:
    """The name that a stage of a round has in the manifest, and its folder below the run's.

    >>> stage_path("corpus", 0), stage_path("corpus", 2), stage_path("bucket", 1)
    ('corpus', 'rounds/2/corpus', 'bucket')
    """
    own = (*RESULTS, *RANKING) if number > 1 else RESULTS if number else ()
    return f"rounds/{number}/{stage}" if stage in own else stage


place = stage_path  # until its readers have the new name


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a run.

    Attributes:
        name: as `stage_path` gives it.
        round: of which round; 0 of none.
        needs: stages it reads, if the configuration has them; it may decide which.
        version: raised when the stage makes something else from the same.
        parts: what its result depends on beside the stages it needs, as JSON values.
        make: does the work and gives its account; `digest` in it stands for what was made.
        intact: whether what the account describes is still there.
        wanted: whether a configuration has this stage.
    """

    name: str
    round: int = 0
    needs: tuple[str, ...] | Callable[[Config], tuple[str, ...]] = ()
    version: int = 1
    parts: Callable[[Run], Any]
    make: Callable[[Run, str], dict[str, Any]]
    intact: Callable[[Run], bool]
    wanted: Callable[[Config], bool] = lambda config: True

    @property
    def base(self) -> str:
        """Its name in any round."""
        return self.name.removeprefix(f"rounds/{self.round}/")

    def reads(self, config: Config) -> tuple[str, ...]:
        """`needs` under a configuration."""
        return self.needs(config) if callable(self.needs) else self.needs
