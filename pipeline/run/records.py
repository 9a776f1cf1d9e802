"""The records of a run folder, as typed models.

`StageRecord` is a stage's `_stage.json`; `RunRecord` is the run's record, with the records of its
finished stages by name, such as `score` and `rounds/2/score`. Records keep unknown fields, and
write only fields that were set.
"""

from __future__ import annotations

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
        """The fields that were set, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


class StageRecord(Lenient):
    """The record of a finished stage.

    A stage with fields of its own has a subclass: `class IdfRecord(StageRecord, stage="idf")`;
    `stage` may list several names.
    """

    stage: ClassVar[str] = ""
    classes: ClassVar[dict[str, type[StageRecord]]] = {}

    key: str = ""  # digest of everything that the result depends on
    digest: str = ""  # digest of the result; keys of later stages depend on it
    seconds: float = 0.0  # from the stage's start to its end
    peak_memory: int = 0  # bytes, the largest of any process of the stage; 0 if it was not measured
    round: int | None = None  # the best round, if the result is copied from it
    config: dict[str, Any] = {}  # the configuration that made it
    versions: dict[str, str] = {}  # versions of libraries
    reads: dict[str, str] = {}  # digests of the stages that it was made from, by stage
    jobs: list[RemoteJob] = []  # jobs on a service that made it, or that it waited for

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
    worker_seconds: float = 0.0  # time that workers spent on rows, added up
    metrics: dict[str, Any] = {}  # the job's Beam counters
    saved: dict[str, Saved] = {}  # rows not translated, by key: nmt.reuse, input.unique
    cleaned: dict[str, int] = {}  # pairs that `input.clean` changed, by kind
    unigram_f1: float | None = None  # for a corpus: the median over up to about 10,000 pairs
    text: str = ""  # for a corpus: `tsv_state` of its text form
    earlier: int | None = None  # number of pairs in the replaced corpus, if any
    still: int | None = None  # how many of those pairs are in this corpus, too, by id


class InputFile(Lenient):
    """A file of the bitext, or a file or folder that a training read."""

    path: str
    bytes: int = 0
    sha256: str


class IngestRecord(PairsRecord, stage="ingest"):
    """The pairs read from the input."""

    inputs: list[InputFile] = []
    terms: list[dict[str, str]] = []  # version, licence and citation of each OPUS corpus
    ids: list[str] = []  # where ids come from (`Bitext.ids`); empty in earlier versions
    shard_rows: int = 0  # input lines in a shard


class UsedModel(Lenient):
    """A third-party model: folder or name on the Hub, digest of its files, commit on the Hub
    (`revision`), and licence from its card."""

    path: str = ""
    sha256: str = ""
    revision: str | None = None
    license: str | None = None


class TranslationModel(UsedModel):
    """A translation model, with the digests of the conversions that workers used (`converted`)."""

    family: str = ""
    converted: list[str] = []
    compute_types: list[Precision] = []


_PAIR_MODELS = "sentence_model cross_encoder_model wordnet spacy forward_model"


class ScoringModelRecord(StageRecord, stage=_PAIR_MODELS):
    """A model that scores pairs: sentence or translation model, spaCy pipeline, or WordNet."""

    model: UsedModel = UsedModel()


class BackTranslateRecord(PairsRecord, stage="back_translate pivot"):
    """Pairs with translations; for `pivot`, plain text with sources that the forward model made."""

    model: TranslationModel = TranslationModel()


class ScorerRecord(Lenient):
    """The declaration of a scorer, for the report."""

    meaning: str
    unit: str
    higher_is_better: bool = True


class ScoreRecord(PairsRecord, stage="score"):
    """Scored pairs; `scorers` has the scorers that are not Paraloom's."""

    scorers: dict[str, ScorerRecord] = {}


class BucketRecord(PairsRecord, stage="bucket"):
    """Pairs with deciles; `deciles` describes the deciles of each score."""

    deciles: dict[str, Deciles] = {}


class IdfRecord(StageRecord, stage="idf"):
    """Inverse document frequencies; `documents` is 0 if they come from a file."""

    words: int = 0
    documents: int = 0


class TrainingRecord(StageRecord, stage="embeddings paragram nmt forward_nmt"):
    """A stage that trains; `training` has the metrics, empty if word vectors come from a file."""

    training: dict[str, Any] = {}
    files: dict[str, InputFile] = {}  # files that an encoder's training read, by key


class DecileTrial(Lenient):
    """Neighbouring deciles of a score, and the results of encoders that were trained on them."""

    scorer: str
    deciles: tuple[int, ...]
    pairs: int  # number of training pairs
    scores: tuple[float, ...]  # Pearson × 100 on the labelled pairs, one per seed

    @property
    def mean(self) -> float:
        """The mean score over the seeds."""
        return fmean(self.scores)


class AutoSelectRecord(StageRecord, stage="auto_select"):
    """The deciles that `select.by: auto` found; see `auto_select`."""

    trials: list[DecileTrial] = []
    chosen: DecileTrial
    labelled: int = 0  # number of labelled pairs


class LoopRecord(StageRecord, stage="loop"):
    """The comparison of all rounds."""

    labelled: list[float]  # Pearson × 100 of each round's encoder on the labelled pairs
    data_sets: int  # number of labelled data sets
    pairs: int
    best: int  # number of the best round, from 1


class Correlation(Lenient):
    """Correlations × 100, None where undefined; `mse` only for a model that predicts labels."""

    pearson: float | None
    spearman: float | None
    mse: float | None = None


class EvaluatedSet(Lenient):
    """A labelled data set; correlations by model."""

    pairs: int
    unscored: int = 0
    models: dict[str, Correlation]


class EvaluatedGroup(Lenient):
    """The data sets of a year of STS, or of SICK; `mean` is by model, None outside STS."""

    data_sets: dict[str, EvaluatedSet]
    missing: list[str] = []
    mean: dict[str, Correlation] | None = None


class Evaluation(Lenient):
    """The result of `paraloom.models.embeddings.applications.evaluation.Report.json`."""

    models: list[str]
    groups: dict[str, EvaluatedGroup]


class EvaluateRecord(StageRecord, stage="evaluate"):
    """The encoder on STS and SICK."""

    results: Evaluation


class UnderWay(Lenient):
    """The stage at work, and when it started, in seconds since the epoch."""

    stage: str
    since: float
    jobs: list[RemoteJob] = []


Kind = TypeVar("Kind", bound=StageRecord)


class RunRecord(Lenient):
    """The record of a run or of a derived run, from its folder."""

    config: Config = Config.of({"run": "-", "input": {"format": "tsv", "paths": ["-"]}})
    versions: dict[str, str] = {}
    planned: list[str] = []  # all stages that the configuration has
    wanted: list[str] = []  # the stages of the last command
    outdated: list[str] = []  # finished stages that an earlier configuration made
    stages: dict[str, SerializeAsAny[StageRecord]] = {}
    under_way: UnderWay | None = None  # the stage at work, or at work when the process was killed
    place: str = ""  # a derived run's folder, below the run's

    @field_validator("stages", mode="before")
    @classmethod
    def _by_kind(cls, values: Any) -> Any:
        return {
            name: of if isinstance(of, StageRecord) else stage_record(name, of)
            for name, of in values.items()
        }

    def header(self) -> dict[str, Any]:
        """The content of run.json: all but the stages."""
        values = self.model_dump(mode="json", exclude={"stages", "place"}, exclude_defaults=True)
        return {**values, "config": self.config.model_dump(mode="json")}

    def roll_up(self) -> dict[str, Any]:
        """The content of manifest.json; it repeats a stage's configuration and versions only if
        they may differ from the run's."""
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
        """The record of a finished stage by its class, and by its name if several have the class.

        >>> RunRecord(stages={"idf": {"words": 31}}).find(IdfRecord).words
        31
        """
        found = self.stages.get(name or kind.stage)
        return found if isinstance(found, kind) else None

    def path(self, stage: str) -> str:
        """The name of a stage, preceded by the place of this derived run if it makes the stage."""
        return f"{self.place}/{stage}" if self.place and stage in own(self.place) else stage

    def derived(self, place: str) -> RunRecord:
        """The record of the derived run in a place, with the stages that it takes from this run;
        with the place "", this run's record without its derived runs."""
        mine = own(place) if place else ()
        stages = {n: of for n, of in self.stages.items() if "/" not in n and n not in mine}
        stages |= {n: self.stages[p] for n in mine if (p := f"{place}/{n}") in self.stages}
        stages = {name: stages[name] for name in (*TABLE, *stages) if name in stages}
        config = self.config.derived(place) if place else self.config
        return self.model_copy(update={"config": config, "stages": stages, "place": place})

    @property
    def best(self) -> RunRecord:
        """The record of the run without its derived runs; with several rounds, the record of the
        best round, which the run's results are copied from."""
        number = (self.stages.get("select") or StageRecord()).round
        place = f"rounds/{number}"
        return self.derived(place if f"{place}/select" in self.stages else "")

    @property
    def rounds(self) -> list[str]:
        """The places of the rounds of a finished loop; the run's own place if there was no loop."""
        loop = self.find(LoopRecord)
        return [f"rounds/{n + 1}" for n in range(len(loop.labelled))] if loop else [""]

    @property
    def inputs(self) -> list[InputFile]:
        """The files of the bitext."""
        return (self.find(IngestRecord) or IngestRecord()).inputs

    @property
    def own_scorers(self) -> dict[str, ScorerRecord]:
        """The scorers that are not Paraloom's, by column."""
        return (self.find(ScoreRecord) or ScoreRecord()).scorers

    @property
    def bleu(self) -> float | None:
        """BLEU of the translation model on held-out pairs; None if the run did not train it."""
        return (self.find(TrainingRecord, "nmt") or TrainingRecord()).training.get("bleu")

    @property
    def pair_records(self) -> dict[str, PairsRecord]:
        """The finished stages that produce pairs."""
        return {n: stage for n, stage in self.stages.items() if isinstance(stage, PairsRecord)}


def stage_record(name: str, values: Any) -> StageRecord:
    """Make a stage's record from JSON values; it has its own class if that class is imported."""
    name = name.rpartition("/")[2]
    common = PairsRecord if name in TABLE and TABLE[name].pairs else StageRecord
    return StageRecord.classes.get(name, common).model_validate(values)
