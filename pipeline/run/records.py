"""Pydantic models of the records in a run folder, such as `StageRecord` and `RunRecord`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, SerializeAsAny, field_validator

from paraloom.beam_jobs.engine.shards import Saved
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.beam_jobs.transforms.shares import Deciles
from paraloom.models.nmt.options import Precision
from paraloom.pipeline.config import Config
from paraloom.pipeline.stages import TABLE, own


class Lenient(BaseModel):
    """A model that keeps unknown fields."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    def json_values(self) -> dict[str, Any]:
        """Return the fields that were set, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


class StageRecord(Lenient):
    """The record of a finished stage, stored in `_stage.json`.

    The class argument `stage` contains the names of a subclass's stages, separated by spaces.
    """

    stage: ClassVar[str] = ""
    classes: ClassVar[dict[str, type[StageRecord]]] = {}

    key: str = ""  # digest of everything that the result depends on
    digest: str = ""  # digest of the result; keys of later stages depend on it
    seconds: float = 0.0
    peak_memory: int = 0  # bytes of the process that used the most memory; 0 if unknown
    round: int | None = None  # number of the best round, if the result is copied from that round
    config: dict[str, Any] = {}
    versions: dict[str, str] = {}
    reads: dict[str, str] = {}  # digests of the results that the stage read, by stage
    jobs: list[RemoteJob] = []

    def __init_subclass__(cls, *, stage: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.stage = stage.partition(" ")[0]
        StageRecord.classes |= dict.fromkeys(stage.split(), cls)


class PairsRecord(StageRecord, stage="select"):
    """The record of a stage that produces pairs."""

    rows_in: int = 0
    rows_out: int = 0
    rows_rejected: int = 0
    rejected: dict[str, int] = {}  # rows per reason, the most frequent reason first
    shards: int = 0  # number of part files
    worker_seconds: float = 0.0  # total time that workers spent on rows
    metrics: dict[str, Any] = {}  # Beam counters of the job
    saved: dict[str, Saved] = {}  # rows that needed no translation, by configuration key
    cleaned: dict[str, int] = {}  # number of pairs that `input.clean` changed, by kind
    # The following fields are set only for a corpus.
    unigram_f1: float | None = None  # the median of a sample of about 10,000 pairs
    text: str = ""  # size and last bytes of corpus.tsv.gz, from `tsv_state`
    earlier: int | None = None  # number of pairs in the corpus that this corpus replaced
    still: int | None = None  # number of pairs in both corpora, matched by id


class InputFile(Lenient):
    """A file of the bitext, or a file or folder that a training read."""

    path: str
    bytes: int = 0
    sha256: str


class IngestRecord(PairsRecord, stage="ingest"):
    """The record of the pairs that were read from the input."""

    inputs: list[InputFile] = []
    terms: list[dict[str, str]] = []  # version, licence and citation of each OPUS corpus
    shard_rows: int = 0  # input lines in a shard


class UsedModel(Lenient):
    """A model that a stage used."""

    path: str = ""  # folder, or name on the Hub
    sha256: str = ""
    revision: str | None = None  # commit on the Hub
    license: str | None = None


class TranslationModel(UsedModel):
    """A translation model."""

    family: str = ""
    converted: list[str] = []  # digests of the converted models that workers used
    compute_types: list[Precision] = []


_PAIR_MODELS = "sentence_model cross_encoder_model wordnet spacy forward_model"


class ScoringModelRecord(StageRecord, stage=_PAIR_MODELS):
    """The record of a model, or of WordNet, that a scorer uses."""

    model: UsedModel = UsedModel()


class BackTranslateRecord(PairsRecord, stage="back_translate pivot"):
    """The record of translations, or of the sources that `pivot` makes for plain text."""

    model: TranslationModel = TranslationModel()


class ScorerRecord(Lenient):
    """The declaration of a scorer, for the report."""

    meaning: str
    unit: str
    higher_is_better: bool = True


class ScoreRecord(PairsRecord, stage="score"):
    """The record of scored pairs."""

    scorers: dict[str, ScorerRecord] = {}  # scorers that are not built in, by column


class BucketRecord(PairsRecord, stage="bucket"):
    """The record of pairs with deciles."""

    deciles: dict[str, Deciles] = {}


class IdfRecord(StageRecord, stage="idf"):
    """The record of inverse document frequencies."""

    words: int = 0
    documents: int = 0  # 0 if the frequencies come from a file


class TrainingRecord(StageRecord, stage="embeddings paragram nmt forward_nmt"):
    """The record of a stage that trains a model."""

    training: dict[str, Any] = {}  # metrics; empty if word vectors come from a file
    files: dict[str, InputFile] = {}  # files that an encoder's training read, by configuration key


class DecileTrial(Lenient):
    """A range of deciles, and the results of the encoders that were trained on its pairs."""

    scorer: str
    deciles: tuple[int, ...]
    pairs: int
    scores: tuple[float, ...]  # Pearson × 100 on the labelled pairs, one per seed

    @property
    def mean(self) -> float:
        """The mean score over the seeds."""
        return fmean(self.scores)


class AutoSelectRecord(StageRecord, stage="auto_select"):
    """The record of the deciles that `select.by: auto` chose."""

    trials: list[DecileTrial] = []
    chosen: DecileTrial
    labelled: int = 0


class LoopRecord(StageRecord, stage="loop"):
    """The record of the comparison of all rounds."""

    labelled: list[float]  # Pearson × 100 of each round's encoder on the labelled pairs
    data_sets: int
    pairs: int
    best: int  # number of the best round, from 1


class Correlation(Lenient):
    """Correlations of a model with labels, × 100. An undefined correlation is None."""

    pearson: float | None
    spearman: float | None
    mse: float | None = None  # mean squared error of a model that predicts labels


class EvaluatedSet(Lenient):
    """The results on a labelled data set."""

    pairs: int
    unscored: int = 0
    models: dict[str, Correlation]


class EvaluatedGroup(Lenient):
    """The results on a group of data sets: a year of STS, STS Benchmark, or SICK."""

    data_sets: dict[str, EvaluatedSet]
    missing: list[str] = []
    mean: dict[str, Correlation] | None = None  # by name of the model; only for a year of STS


class Evaluation(Lenient):
    """The values that `paraloom.models.embeddings.applications.evaluation.Report.json` returns."""

    models: list[str]
    groups: dict[str, EvaluatedGroup]


class EvaluateRecord(StageRecord, stage="evaluate"):
    """The record of the encoder's evaluation on STS and SICK."""

    results: Evaluation


class UnderWay(Lenient):
    """A stage that has started and has not finished."""

    stage: str
    since: float  # seconds since the epoch
    jobs: list[RemoteJob] = []
    launcher: str = ""  # host and process id of the command


Kind = TypeVar("Kind", bound=StageRecord)


class RunRecord(Lenient):
    """The record of a run or of a derived run."""

    config: Config = Config.of({"run": "-", "input": {"format": "tsv", "paths": ["-"]}})
    versions: dict[str, str] = {}
    planned: list[str] = []  # all stages of the configuration
    wanted: list[str] = []  # the stages that the last command had to bring up to date
    outdated: list[str] = []  # finished stages that an earlier configuration made
    stages: dict[str, SerializeAsAny[StageRecord]] = {}
    under_way: UnderWay | None = None  # still set if the process was killed
    place: str = ""  # the folder of a derived run, relative to the run's folder

    @field_validator("stages", mode="before")
    @classmethod
    def _by_kind(cls, values: Any) -> Any:
        return {
            name: of if isinstance(of, StageRecord) else stage_record(name, of)
            for name, of in values.items()
        }

    def header(self) -> dict[str, Any]:
        """Return the content of run.json, which is this record without the stages."""
        values = self.model_dump(mode="json", exclude={"stages", "place"}, exclude_defaults=True)
        return {**values, "config": self.config.model_dump(mode="json")}

    def roll_up(self) -> dict[str, Any]:
        """Return the content of manifest.json.

        Stages lack `reads`, and the values that the manifest contains once for the whole run.
        """
        stages = {}
        for name, of in self.stages.items():
            left = {"reads", "inputs", *(["config"] if name not in self.outdated else [])}
            if of.versions == self.versions and not name.endswith("embeddings"):
                left.add("versions")
            values = of.json_values()
            stages[name] = {field: values[field] for field in values if field not in left}
        inputs = [of.json_values() for of in self.inputs]
        values = {**self.header(), "inputs": inputs, "stages": stages}
        return {field: of for field, of in values.items() if field != "outdated"}

    def find(self, kind: type[Kind], name: str = "") -> Kind | None:
        """Return the stage record of the class `kind`, or None if the stage is not finished.

        `name` is required if several stages have records of this class.

        >>> RunRecord(stages={"idf": {"words": 31}}).find(IdfRecord).words
        31
        """
        return of_kind(kind, name or kind.stage, self.stages)

    def path(self, stage: str) -> str:
        """The name of a stage in the run, such as `rounds/2/score` for a stage of a round."""
        return f"{self.place}/{stage}" if self.place and stage in own(self.place) else stage

    def derived(self, place: str) -> RunRecord:
        """Return the record of a derived run, with the stages that it shares with this run.

        With the place "", return this run's record without the stages of derived runs.
        """
        mine = own(place) if place else ()
        stages = {n: of for n, of in self.stages.items() if "/" not in n and n not in mine}
        stages |= {n: self.stages[p] for n in mine if (p := f"{place}/{n}") in self.stages}
        stages = {name: stages[name] for name in (*TABLE, *stages) if name in stages}
        config = self.config.derived(place) if place else self.config
        return self.model_copy(update={"config": config, "stages": stages, "place": place})

    @property
    def best(self) -> RunRecord:
        """The record of the best round, or of the run itself if it has no rounds."""
        copied = self.stages.get("select") or self.stages.get("embeddings") or StageRecord()
        place = f"rounds/{copied.round}"
        return self.derived(place if f"{place}/select" in self.stages else "")

    @property
    def rounds(self) -> list[str]:
        """The folders of the rounds if the stage `loop` is finished, or else `[""]`."""
        loop = self.find(LoopRecord)
        return [f"rounds/{n + 1}" for n in range(len(loop.labelled))] if loop else [""]

    @property
    def inputs(self) -> list[InputFile]:
        """The files of the bitext."""
        return (self.find(IngestRecord) or IngestRecord()).inputs

    @property
    def own_scorers(self) -> dict[str, ScorerRecord]:
        """The scorers that are not built in, by column."""
        return (self.find(ScoreRecord) or ScoreRecord()).scorers

    @property
    def bleu(self) -> float | None:
        """BLEU of the translation model that the run trained, on held-out pairs."""
        return (self.find(TrainingRecord, "nmt") or TrainingRecord()).training.get("bleu")

    @property
    def pair_records(self) -> dict[str, PairsRecord]:
        """The records of the finished stages that produce pairs."""
        return {n: stage for n, stage in self.stages.items() if isinstance(stage, PairsRecord)}


def of_kind(kind: type[Kind], name: str, records: Mapping[str, StageRecord]) -> Kind | None:
    """Return the record of the stage `name` if it is of the class `kind`."""
    found = records.get(name)
    if found and StageRecord.classes.get(name) is kind and not isinstance(found, kind):
        with suppress(ValueError):  # the record is damaged
            return kind.model_validate(found.json_values())  # read before `kind` was imported
    return found if isinstance(found, kind) else None


def stage_record(name: str, values: Any) -> StageRecord:
    """Make a stage's record from JSON values. Use the stage's own class if it is imported."""
    name = name.rpartition("/")[2]
    common = PairsRecord if name in TABLE and TABLE[name].pairs else StageRecord
    return StageRecord.classes.get(name, common).model_validate(values)
