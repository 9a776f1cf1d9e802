"""The configuration, the folder and the finished stages of a run that makes stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import Bitext, find_bitext
from paraloom.beam_jobs.engine.shards import Shard, read_whole
from paraloom.beam_jobs.storage import remote
from paraloom.beam_jobs.transforms.criteria import Criteria
from paraloom.beam_jobs.transforms.exclusion import Exclusion
from paraloom.models import hub
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.languages import ENGLISH
from paraloom.models.printing import not_text
from paraloom.models.scorers import ENCODER
from paraloom.pipeline.config.input import InputOptions
from paraloom.pipeline.config.options import Config
from paraloom.pipeline.run.folder import read_stages, shards_of
from paraloom.pipeline.run.records import Kind, StageRecord, of_kind
from paraloom.pipeline.stages import RESOURCES, TABLE, folder_of, own


@dataclass(eq=False)
class Run:
    """A run that makes stages. Code that only reads a run folder uses `RunRecord` instead.

    A derived run reuses stages of its base. A round or a named selection is in a subfolder of its
    base. A preview has its own input, and uses the trained models of its base.
    """

    config: Config
    arguments: Sequence[str] = ()  # options of Beam
    base: Run | None = None
    place: str = ""  # folder of a round or named selection, relative to the base's folder
    before: Run | None = None  # the previous round, whose encoder scores the pairs
    records: dict[str, StageRecord] = field(default_factory=dict)  # only for finished stages
    forced: bool = False  # whether the running stage ignores earlier results

    @classmethod
    def open(cls, config: Config, arguments: Sequence[str] = (), base: Run | None = None) -> Run:
        """Open the run in the folder that the configuration names, with its finished stages."""
        return cls(config, arguments, base, records=read_stages(config.run))

    def derived(self, place: str, before: Run | None = None) -> Run:
        """Open the derived run in a subfolder, such as `rounds/2` or `selections/strict`."""
        records = read_stages(storage.join(self.config.run, place))
        return Run(self.config.derived(place), self.arguments, self, place, before, records)

    @cached_property
    def children(self) -> dict[str, Run]:
        """The rounds and named selections of this run, by subfolder."""
        found: dict[str, Run] = {}
        for place in self.config.places if not self.place else ():
            before = [of for name, of in found.items() if name.startswith("rounds/")]
            found[place] = self.derived(place, before[-1] if before else None)
        return found

    @property
    def trained_on(self) -> Run:
        """The run whose corpus trains the encoder: this run, or a named selection."""
        name = self.config.embeddings.selection
        return self.children[f"selections/{name}"] if name else self

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The stages that this run makes itself. Its base makes all other stages."""
        if self.base and self.place:
            return own(self.place)
        trained = self.base.records if self.base else {}  # models that a preview uses
        taken = trained.keys() & {"nmt", "forward_nmt", *RESOURCES}
        return tuple(name for name in TABLE if name not in taken)

    def owner(self, stage: str) -> Run:
        """Return the run that makes a stage, which is this run or its base."""
        return self if self.base is None or stage in self.own else self.base.owner(stage)

    def path(self, stage: str) -> str:
        """Return the name of a stage with the subfolder of its owner, such as `rounds/2/score`."""
        return "/".join(filter(None, (self.owner(stage).place, stage)))

    def digest(self, stage: str) -> str:
        """Return the digest of a finished stage's result."""
        return self.owner(stage).records[stage].digest

    def find(self, kind: type[Kind], stage: str = "") -> Kind | None:
        """Return the stage record of the class `kind`, like `RunRecord.find`."""
        stage = stage or kind.stage
        return of_kind(kind, stage, self.owner(stage).records)

    def record(self, kind: type[Kind], stage: str = "") -> Kind:
        """Return the stage record of the class `kind`. The stage must be finished."""
        found = self.find(kind, stage)
        assert found, f"{stage or kind.stage} is not finished"
        return found

    def folder(self, stage: str) -> str:
        """Return the folder of a stage's files."""
        return storage.join(self.owner(stage).config.run, folder_of(self.path(stage)))

    def shards(self, stage: str) -> list[Shard]:
        """Return the part files of a finished stage, in their order."""
        return shards_of(self.owner(stage).config.run, self.path(stage))

    def local_folder(self, stage: str) -> Path:
        """Return the local folder to which a stage writes. In a local run, this is `folder`."""
        return remote.local_workdir(self.config.run) / folder_of(self.path(stage))

    def publish(self, stage: str) -> str:
        """Return the digest of a stage's local folder. If the run is remote, upload the folder."""
        total = digest(self.local_folder(stage))
        remote.publish(self.local_folder(stage), self.folder(stage))
        return total

    def local_files(self, stage: str) -> list[str]:
        """Copy a finished stage's part files to this machine if needed. Return their paths."""

        def local(shard: Shard) -> str:
            path = self.local_folder(stage) / shard.file
            if not path.exists() or storage.digest(storage.read_bytes(str(path))) != shard.digest:
                storage.write_bytes(str(path), read_whole(shard))
            return str(path)

        return storage.several(local, self.shards(stage))

    @property
    def input(self) -> InputOptions:
        """The configuration section `input`, which must be set."""
        assert self.config.input is not None
        return self.config.input

    @cached_property
    def bitexts(self) -> list[Bitext]:
        """The input files, with their digests."""
        found = find_bitext(self.input.format, self.input.paths, self.input.layout)
        selections = (self.config.select, *self.config.select.selections.values())
        where = [condition for of in selections for condition in of.criteria().where]
        for condition in (*self.input.conditions, *where):
            if condition.column in self.input.keep:
                condition.check_type(found[0].kept.field(condition.column).type)
        paths = [path for bitext in found for path in bitext.paths]
        for path in paths:
            if problem := not_text(path):
                raise UserError(f"{path}: its name {problem}; rename it")
        sha256 = dict(zip(paths, storage.several(storage.known_digest, paths), strict=True))
        return [replace(b, sha256=tuple(sha256[path] for path in b.paths)) for b in found]

    @property
    def language(self) -> str:
        """The short code of the language of references and translations."""
        return self.config.language

    def with_language(self, values: Any) -> Any:
        """Add the language to the values in a fingerprint, unless the language is English."""
        return values if self.language == ENGLISH else [values, self.language]

    @property
    def ranked_by(self) -> list[str]:
        """The scores whose deciles `auto_select` or `judged` may choose. In later rounds, this list
        contains only the encoder's score."""
        return [ENCODER] if self.before else self.config.score.names

    def criteria(self, by: str = "", deciles: Sequence[int] | None = None) -> Criteria:
        """Return the criteria of `select` with these deciles of the score `by`.

        If `deciles` is None, all deciles are selected.
        """
        options = self.config.select
        return replace(
            options.criteria(),
            by=by,
            deciles=None if deciles is None else tuple(sorted(set(deciles))),
            size=options.size,
            seed=self.config.seed,
            per_source=options.per_source,
            max_overlap=options.max_overlap,
            language=self.language,
            exclude=self.exclusion,
            generators=bool(self.config.generators),
            rank="translation_score" if self.config.generators and self.config.has_model else None,
            per_generator=options.per_generator,
            near_duplicates=options.near_duplicates,
        )

    @property
    def exclusion(self) -> Exclusion | None:
        """The evaluation sentences. None if there are none, or if `exclude` is not finished."""
        options, model = self.config.select, excluding_model(self.config)
        if not options.exclude or "exclude" not in self.owner("exclude").records:
            return None
        return Exclusion(
            folder=self.folder("exclude"),
            digest=self.digest("exclude"),
            similarity=options.exclude_similarity,
            model=model and hub.pinned(model),
        )


def excluding_model(config: Config) -> str | None:
    """Return the model for `select.exclude_similarity`, or None if this key is not used."""
    if not config.select.exclude or config.select.exclude_similarity is None:
        return None
    if name := config.score.sentence_model:
        return name
    raise UserError("score.sentence_model: is missing; select.exclude_similarity needs it")
