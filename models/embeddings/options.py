"""Options of encoders and their training."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, model_validator

from paraloom.models.files import digest
from paraloom.models.languages import ENGLISH
from paraloom.models.options import (
    Count,
    InputFile,
    InputPath,
    NonNegativeNumber,
    Options,
    PositiveNumber,
    Rate,
    Size,
)

InputFiles = Annotated[list[InputFile], Field(min_length=1)]
Column = Annotated[str, Field(min_length=1)] | Count

AUTO = "auto"
_RUNTIME = ("checkpoint_every", "device")
_TASKS = {"similarity", "malstm", "phrases", "context"}  # in `paraloom.papers`, and their sections
_KEYS = {"cell", "scramble_variant", "scramble_swaps"}  # further ones there
_FORMER = {"cell": "torch", "min_count": 1, "precision": "float32"}
"""Former keys (version 0.2) with their now fixed values, so that content keys stay the same."""


class PairsOptions(Options):
    """A source of pairs to train on instead of the corpus; the key `pairs` is a list of sources."""

    paths: InputFiles
    """Files of pairs: Parquet, tab-separated, CSV, JSON Lines; folders of Parquet files."""
    first: Column = "reference"
    """Column of the first sentence: a column name in Parquet or in the first line of a
    tab-separated file, or a number from 1, for files without a header. A tab-separated file that
    names neither `reference` nor `translation` is read by numbers 1 and 2."""
    second: Column = "translation"
    """Column of the paraphrase, given like `first`."""
    negative: Column | None = None
    """Column with a hard negative: a sentence that is no paraphrase of the two, or empty; null:
    negatives come from the other pairs only."""


class Task(NamedTuple):
    """A training task in `embeddings.task`."""

    module: str  # defines `train`; see `paraloom.models.embeddings.tasks`
    objective: str  # training data and method, for people


class EmbeddingOptions(Options):
    """The encoder and its training. Defaults are the values in the papers, if these agree.

    W&G is Wieting & Gimpel 2017, ParaNMT is Wieting & Gimpel 2018.
    """

    tasks: ClassVar[dict[str, Task]] = {
        "paraphrases": Task(
            "paraloom.models.embeddings.tasks.paraphrases",
            "paraphrase pairs, with a margin loss: the paraphrase of a sentence must have a higher "
            "cosine than the most similar other sentence of several mini-batches (Wieting and "
            "Gimpel, 2018)",
        )
    }
    """Known tasks; a class in `paraloom.papers` has more."""

    task: Literal["paraphrases", "similarity", "malstm", "phrases", "context"] = "paraphrases"
    """Training task: paraphrases trains on the corpus, or on `pairs`; the others have a section of
    their name, and `paraloom papers train` trains them."""
    pairs: Annotated[list[PairsOptions], Field(min_length=1)] | None = None
    """Pairs to train on instead of the corpus; null: the corpus."""
    selection: str | None = None
    """Corpus to train on, by its name in `select.named`; null: the run's own. An encoder may profit
    from more pairs than people want to read (choosing-pairs.md)."""
    language: str | None = None
    """Language code of the texts of `pairs`; null: `input.target_language`, or English if there is
    no `input`."""

    # The encoder
    model: str = "word-avg"
    """Name of the encoder, such as word-avg, trigram-avg, lstm-avg or bilstm-max (an unknown name
    lists all); names joined by `+` are trained as one encoder (`word-avg+trigram-avg`)."""
    dim: Size = 300
    """Dimension of word vectors."""
    hidden: Size | None = None
    """Dimension of the recurrent state in each direction; null: the dimension of word vectors."""
    combine: Literal["concat", "mean", "tanh"] = "concat"
    """How two directions are combined: concatenated, averaged, or by a tanh layer over both."""
    mix: Literal["concat", "add"] = "concat"
    """How the encoders of a mixed model are combined."""
    tags: bool | Literal["start", "end"] = False
    """Add a start and an end tag to every sentence, or one of them (W&G, footnote 4)."""
    initial_vectors: Literal["auto"] | Annotated[str, InputPath(keyword=AUTO)] | None = AUTO
    """Initial word vectors: a file in text form (PARAGRAM, GloVe) or word2vec's binary form, plain
    or compressed; auto: the run's own PARAGRAM vectors, if it has them and they have `dim`
    dimensions, else random; null: random. For tasks other than paraphrases, auto means null."""
    max_vocabulary: Count | None = 200_000
    """Number of most frequent words (or trigrams) with a vector of their own; null: all."""

    # Training
    epochs: Count = 5
    """Passes over all pairs."""
    batch_size: Count = 100
    """Pairs in a mini-batch; each mini-batch is one optimiser step."""
    mega_batch: Count = 40
    """M: mini-batches encoded together to choose negatives from (1: each mini-batch alone)."""
    negatives: Literal["other", "same", "both"] = "same"
    """Side of the other pairs from which a negative is chosen; same: as in W&G 3.2.1."""
    margin: PositiveNumber = 0.4
    """δ of the loss: the paraphrase must be more similar than the negative by this much."""
    learning_rate: PositiveNumber = 0.001
    """Step size of Adam."""
    clip: PositiveNumber | None = None
    """Gradients with a larger norm are scaled down to this norm; null: not clipped."""
    lambda_c: NonNegativeNumber = 0.0
    """λ_c: adds λ ‖W‖² of all weights except word vectors to the loss (W&G, Eq. 2)."""
    lambda_w: NonNegativeNumber = 0.0
    """λ_w: adds λ ‖W − W₀‖² of the word vectors and their initial values W₀ to the loss."""
    dropout: Rate = 0.0
    """Fraction of the components of word vectors set to zero."""
    word_dropout: Rate = 0.0
    """Fraction of words whose vector is set to zero."""
    scramble: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of pairs in which the words of both sentences are shuffled (tasks paraphrases,
    similarity and malstm)."""

    # The run
    checkpoint_every: Count = 5000
    """Steps between checkpoints, from which an interrupted training resumes."""
    development: InputFile | InputFiles | None = None
    """Development data of task paraphrases: a file or folder of STS, SICK or judgments, or a list.
    The weights with the best mean Pearson × 100 over the data sets are kept. null: the last weights
    are kept."""
    evaluate_every: Count | None = None
    """Steps between two evaluations on `development` within an epoch (checked after each
    mega-batch); null: only after each epoch."""
    patience: Count | None = None
    """Training ends after this number of evaluations without a better score; null: after all
    epochs."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto takes a GPU if there is one. On a GPU, recurrent encoders compute in
    TF32, which is faster: losses differ from a CPU's by up to 0.006."""

    @model_validator(mode="before")
    @classmethod
    def _has_its_task(cls, values: Any) -> Any:
        """Name the command for other tasks and keys, before keys are reported as unknown."""
        given = values if isinstance(values, Mapping) else {}
        if (task := given.get("task")) in sorted(_TASKS - cls.tasks.keys()):
            raise ValueError(f"task: {task} is for `paraloom papers`")
        if keys := sorted((_TASKS | _KEYS) & given.keys() - cls.model_fields):
            raise ValueError(f"{keys[0]}: is for `paraloom papers`")
        return values

    def _check(self) -> None:
        if self.language is not None and self.pairs is None:
            raise ValueError("language: belongs to pairs; a run has input.target_language")
        if self.patience is not None and self.development is None:
            raise ValueError("patience: needs development data; set development")

    def chosen(self) -> dict[str, Any]:
        """Keys in effect, for JSON and content keys.

        Keys with the default null are left out while null, so that new keys do not outdate finished
        stages.

        >>> EmbeddingOptions.of(EmbeddingOptions(lambda_c=0.5).chosen()).lambda_c
        0.5
        """
        values, fields = self.model_dump(), type(self).model_fields
        return {
            name: values[name]
            for name in self.keys_in_use()
            if values[name] is not None or fields[name].default is not None
        }

    def of_weights(self) -> dict[str, Any]:
        """Values of keys that change the trained weights, for content keys; digests for files.

        `initial_vectors` is null for auto, since that choice depends on the run.
        """
        values = {**_FORMER, **self.map_files(lambda key, path, mark: digest(path)).chosen()}
        if self.initial_vectors == AUTO:
            values["initial_vectors"] = None
        if self.pairs:
            values["pairs"] = [{**source, "weight": 1.0} for source in values["pairs"]]
        return {name: value for name, value in values.items() if name not in _RUNTIME}

    @property
    def reads_the_corpus(self) -> bool:
        """Whether training reads the run's pairs."""
        return self.task == "paraphrases" and self.pairs is None

    @property
    def score(self) -> Literal["cosine", "dot"]:
        """The score that the task trains."""
        return "cosine"

    def open_head(self, settings: dict[str, Any]) -> Any:
        """The head with these settings, which the task trains beside the encoder."""
        raise ValueError(f"head: {settings.get('name')} is for `paraloom papers`")

    def completed(self, encoder: Any, words: int) -> Any:
        """Add the task's modules to the encoder, for a vocabulary of `words` entries."""
        return encoder

    @property
    def vector_file(self) -> str | None:
        """The user's file with initial vectors."""
        return None if self.initial_vectors == AUTO else self.initial_vectors

    @property
    def development_files(self) -> list[str]:
        """Files and folders with development data."""
        found = self.development or []
        return [found] if isinstance(found, str) else found


KNOWN: list[type[EmbeddingOptions]] = [EmbeddingOptions]
"""The last class reads configurations and saved encoders."""


def read_options(values: Any) -> EmbeddingOptions:
    """Parse a mapping of options, with the tasks that this process knows; options stay as they
    are."""
    options: EmbeddingOptions = KNOWN[-1].of(values) if isinstance(values, Mapping) else values
    return options


def saved_options(values: Mapping[str, Any]) -> EmbeddingOptions:
    """Options of a saved encoder; keys that do not exist, or not here, are dropped, but no cell:
    weights depend on it."""
    options = {k: v for k, v in values.items() if k in KNOWN[-1].model_fields}
    if (cell := values.get("cell", "torch")) != "torch":
        options["cell"] = cell
    for source in options.get("pairs") or ():
        source.pop("weight", None)
    return read_options(options)


AnyEmbeddingOptions = Annotated[SerializeAsAny[EmbeddingOptions], BeforeValidator(read_options)]
"""A section `embeddings`, possibly of a system in `paraloom.papers`."""


class ParagramOptions(Options):
    """Training of word vectors on phrase pairs (averages with the margin loss)."""

    dim: Size = 300
    """Dimension of word vectors."""
    epochs: Count = 5
    """Passes over all pairs."""
    batch_size: Count = 100
    """Pairs in a mini-batch; each mini-batch is one optimiser step."""
    learning_rate: PositiveNumber = 0.001
    """Step size of Adam."""

    def training(self) -> EmbeddingOptions:
        """The same options for the encoder trainer."""
        fixed: dict[str, Any] = {"negatives": "other", "mega_batch": 1, "device": "cpu"}
        fixed |= {"initial_vectors": None, "max_vocabulary": None}
        return EmbeddingOptions.of({**fixed, **self.model_dump()})


class _Settings(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Loading(_Settings):
    """How sentence-transformers loads an encoder's folder."""

    native: bool


class EncoderSettings(_Settings):
    """config.json in an encoder's folder, which need not be trusted."""

    format: Literal[1, 2]  # 1: version 0.2. Bump it if this code could not read new folders
    options: AnyEmbeddingOptions
    vocabularies: dict[str, int]  # number of entries, by kind
    language: str = ENGLISH
    outputs: Count | None = None
    head: dict[str, Any] | None = None  # arguments of `EmbeddingOptions.open_head`
    sentence_transformers: Loading

    @model_validator(mode="before")
    @classmethod
    def _without_former_options(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(given := values.get("options"), dict):
            return {**values, "options": saved_options(given)}
        return values
