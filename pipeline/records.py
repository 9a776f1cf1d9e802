"""The content of manifest.json as typed models.

`RunRecord` is the whole file; its `stages` are the records of finished stages by their names, such
as `score` and `rounds/2/score`. Every model keeps fields that it does not know, and writes only
fields that were set: a manifest of another version passes through unchanged.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, SerializeAsAny, field_validator

from paraloom.beam_jobs.bucket import Deciles
from paraloom.beam_jobs.engine.shards import Saved
from paraloom.beam_jobs.runners.remote_jobs import RemoteJob
from paraloom.models.languages import ENGLISH, short_code
from paraloom.models.nmt.options import Precision
from paraloom.models.scorers.plugins import column_of


class Lenient(BaseModel):
    """A model that keeps unknown fields."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    def json_values(self) -> dict[str, Any]:
        """The fields that were set, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


class InputSection(Lenient):
    """Keys of `input` that reports show."""

    license: str | None = None
    source_language: str = "cs"
    target_language: str = "en"
    keep: list[str] = []
    where: list[str] = []
    unique: str | None = None


class NmtSection(Lenient):
    """Keys of `nmt` that reports show."""

    engine: str = ""
    compute_type: str = ""
    beam: int = 0
    candidates: int = 1
    sampling: dict[str, float] | None = None
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0


class ScoreSection(Lenient):
    """Keys of `score` that reports show."""

    scorers: list[str] = []
    columns: dict[str, Any] = {}
    commands: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """The columns of the scores."""
        return [*(column_of(entry) for entry in self.scorers), *self.columns, *self.commands]


class SelectSection(Lenient):
    """Keys of `select` that reports show."""

    by: str = ""
    precision: float = 0.9
    good: float = 70.0
    deciles: list[int] | None = None
    max_tokens: int | None = None
    size: int | None = None
    where: list[str] = []
    per_source: str = "all"
    per_generator: float | None = None
    named: dict[str, dict[str, Any]] = {}


class ConfigRecord(Lenient):
    """The resolved configuration of a run, perhaps written by another version."""

    run: str = ""
    seed: int = 1
    input: InputSection | None = None
    nmt: NmtSection = NmtSection()
    generators: list[dict[str, Any]] | None = None
    score: ScoreSection = ScoreSection()
    select: SelectSection = SelectSection()

    @property
    def kept(self) -> list[str]:
        """The columns besides scores that conditions may name: the user's, and the generator."""
        return [*(self.input.keep if self.input else ()), *["generator"] * bool(self.generators)]


class StageRecord(Lenient):
    """What the manifest holds of a finished stage.

    A stage with fields of its own has a subclass: `class IdfRecord(StageRecord, stage="idf")`.
    """

    stage: ClassVar[str] = ""
    classes: ClassVar[dict[str, type[StageRecord]]] = {}

    key: str = ""  # of all that the result depends on
    digest: str = ""  # of the result; the keys of the stages that read it depend on it
    seconds: float = 0.0  # from the stage's start to its end
    peak_memory: int = 0  # bytes, the largest of any process of the stage; 0 if it was not measured
    round: int | None = None  # the best round, if the result is a copy of that round's
    config: ConfigRecord | None = None  # that made it, if it is not of the run's present one
    versions: dict[str, str] = {}  # of the libraries that made it, if they are not the run's
    jobs: list[RemoteJob] = []  # that made it, or were waited for, on a service

    def __init_subclass__(cls, *, stage: str | tuple[str, ...] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        if isinstance(stage, str):
            cls.stage = stage
        StageRecord.classes |= dict.fromkeys([stage] if isinstance(stage, str) else stage, cls)


class PairsRecord(StageRecord, stage=("ingest", "select")):
    """A stage that produces pairs."""

    rows_in: int = 0
    rows_out: int = 0
    rows_rejected: int = 0
    rejected: dict[str, int] = {}  # rows per reason, the most frequent reason first
    shards: int = 0  # number of part files
    worker_seconds: float = 0.0  # time that workers spent on rows, added up
    metrics: dict[str, Any] = {}  # the job's Beam counters
    saved: dict[str, Saved] = {}  # not translated, by the key of the configuration that saves it
    cleaned: dict[str, int] = {}  # pairs that `input.clean` changed, by kind
    unigram_f1: float | None = None  # of a corpus: the median of (a sample of) its pairs
    text: str = ""  # of a corpus: `tsv_state` of its text form


class UsedModel(Lenient):
    """A model of others: its folder or name on the Hub, the digest of its files, its commit on the
    Hub (`revision`) and the licence that its card names."""

    path: str = ""
    sha256: str = ""
    revision: str | None = None
    license: str | None = None


class TranslationModel(UsedModel):
    """The model that translated; workers converted it to `converted` (digests)."""

    family: str = ""
    converted: list[str] = []
    compute_types: list[Precision] = []


_PAIR_MODELS = ("sentence_model", "cross_encoder_model", "wordnet", "spacy")


class ScoringModelRecord(StageRecord, stage=_PAIR_MODELS):
    """A model that scores pairs: of sentence-transformers, of spaCy, or WordNet."""

    model: UsedModel = UsedModel()


class BackTranslateRecord(PairsRecord, stage="back_translate"):
    """Pairs with translations."""

    model: TranslationModel = TranslationModel()


class PivotRecord(BackTranslateRecord, stage="pivot"):
    """Pairs of plain text and its translations by the forward model."""


class ScorerRecord(Lenient):
    """What a scorer declares, for the report."""

    meaning: str
    unit: str
    higher_is_better: bool = True


class ScoreRecord(PairsRecord, stage="score"):
    """Scored pairs; `scorers` has those that are not Paraloom's."""

    scorers: dict[str, ScorerRecord] = {}


class BucketRecord(PairsRecord, stage="bucket"):
    """Pairs with deciles; `deciles` is by scorer."""

    deciles: dict[str, Deciles] = {}


class NmtTraining(Lenient):
    """Metrics of a translation model; BLEU is on held-out pairs."""

    bleu: float | None = None


class NmtRecord(StageRecord, stage="nmt"):
    """The translation model that the run trained."""

    training: NmtTraining = NmtTraining()


class IdfRecord(StageRecord, stage="idf"):
    """Inverse document frequencies; `documents` is 0 if they come from a file."""

    words: int = 0
    documents: int = 0


class InputFile(Lenient):
    """A file of the bitext, or a file or folder of a training."""

    path: str
    bytes: int = 0
    sha256: str


class TrainingRecord(StageRecord, stage=("paragram", "embeddings")):
    """A stage that trains; `training` has the metrics, none if word vectors come from a file."""

    training: dict[str, Any] = {}
    files: dict[str, InputFile] = {}  # of an encoder, by the key of the configuration


class DecileTrial(Lenient):
    """Neighbouring deciles of a score, and the results of encoders that were trained on them."""

    scorer: str
    deciles: tuple[int, ...]
    pairs: int  # that the encoders were trained on
    scores: tuple[float, ...]  # Pearson × 100 on the labelled pairs, one per seed

    @property
    def mean(self) -> float:
        """The mean score over the seeds."""
        return fmean(self.scores)


class AutoSelectRecord(StageRecord, stage="auto_select"):
    """The deciles that `select.by: auto` found; see `auto_select`."""

    trials: list[DecileTrial] = []
    chosen: DecileTrial
    labelled: int = 0  # pairs


class LoopRecord(StageRecord, stage="loop"):
    """The rounds compared."""

    labelled: list[float]  # Pearson × 100 of each round's encoder with the labelled pairs
    data_sets: int  # size of the labelled data
    pairs: int
    best: int  # number of the best round, from 1


class Correlation(Lenient):
    """Correlations × 100, None where undefined; `mse` only of a model that predicts labels."""

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
    """What `paraloom.models.embeddings.applications.evaluation.Report.json` gives."""

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
    """The content of manifest.json."""

    config: ConfigRecord = ConfigRecord()
    versions: dict[str, str] = {}
    planned: list[str] = []  # all stages that the configuration has
    wanted: list[str] = []  # the stages of the last command
    inputs: list[InputFile] = []
    stages: dict[str, SerializeAsAny[StageRecord]]
    under_way: UnderWay | None = None  # the stage at work, or at which a process was killed

    @field_validator("stages", mode="before")
    @classmethod
    def _by_kind(cls, values: Any) -> Any:
        classes = {n: StageRecord.classes.get(n.rpartition("/")[2], StageRecord) for n in values}
        return {name: classes[name].model_validate(values[name]) for name in values}

    def find(self, kind: type[Kind], name: str = "") -> Kind | None:
        """The record of a finished stage by its class.

        Args:
            name: the stage's, if it is of a round or has its class in common with others.

        >>> RunRecord(stages={"nmt": {"training": {"bleu": 31.5}}}).find(NmtRecord).training.bleu
        31.5
        """
        found = self.stages.get(name or kind.stage)
        return found if isinstance(found, kind) else None

    @property
    def language(self) -> str:
        """The short code of the language of references and translations."""
        return short_code(self.config.input.target_language if self.config.input else ENGLISH)

    @property
    def own_scorers(self) -> dict[str, ScorerRecord]:
        """The scorers that are not Paraloom's, by column."""
        return (self.find(ScoreRecord) or ScoreRecord()).scorers

    @property
    def bleu(self) -> float | None:
        """BLEU of the translation model that the run trained, if it did."""
        return (self.find(NmtRecord) or NmtRecord()).training.bleu

    @property
    def pair_records(self) -> dict[str, PairsRecord]:
        """The finished stages that produce pairs."""
        return {n: stage for n, stage in self.stages.items() if isinstance(stage, PairsRecord)}
