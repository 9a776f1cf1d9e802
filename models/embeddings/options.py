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
_RUNTIME = ("checkpoint_every", "device")  # configuration keys whose change outdates no results
_TASKS = {"similarity", "malstm", "phrases", "context"}  # tasks of `paraloom.papers`
_KEYS = {"cell", "scramble_variant", "scramble_swaps"}  # keys of `paraloom.papers`
_FORMER = {"cell": "torch", "min_count": 1, "precision": "float32"}
"""Configuration keys that `EmbeddingOptions` no longer has, with their last values. The key of a
result is still computed from these values, so that old results stay valid."""


class PairsOptions(Options):
    """A group of files with the same columns. `pairs` is a list of such groups."""

    paths: InputFiles
    """Files of pairs (Parquet, tab-separated text, CSV or JSON Lines), and folders of Parquet
    files."""
    first: Column = "reference"
    """Column of the first sentence: a column name, or a number (1 for the first column) if files
    have no header. If `first` and `second` have their defaults, and the first line of a text file
    contains neither name, columns 1 and 2 are read."""
    second: Column = "translation"
    """Column of the paraphrase: a name or a number."""
    negative: Column | None = None
    """Column of a hard negative, which is a sentence that is no paraphrase of the pair. Fields of
    this column may be empty. null: negatives come only from other pairs."""


class Task(NamedTuple):
    """A value of `embeddings.task`."""

    module: str  # module with a function `train`; see `paraloom.models.embeddings.tasks`
    objective: str  # description of training data and method for the model card


class EmbeddingOptions(Options):
    """The encoder and its training.

    If W&G (Wieting & Gimpel 2017) and ParaNMT (Wieting & Gimpel 2018) agree on a value, this value
    is the default.
    """

    tasks: ClassVar[dict[str, Task]] = {
        "paraphrases": Task(
            "paraloom.models.embeddings.tasks.paraphrases",
            "paraphrase pairs, with a margin loss: the paraphrase of a sentence must have a higher "
            "cosine than the most similar other sentence of several mini-batches (Wieting and "
            "Gimpel, 2018)",
        )
    }
    """Known tasks. A subclass in `paraloom.papers` has more."""

    task: Literal["paraphrases", "similarity", "malstm", "phrases", "context"] = "paraphrases"
    """Training task. The task paraphrases trains on the corpus or on `pairs`. `paraloom papers
    train` trains the other tasks. Their options are in sections with the tasks' names."""
    pairs: Annotated[list[PairsOptions], Field(min_length=1)] | None = None
    """Pairs to train on instead of the corpus. null: the corpus."""
    selection: str | None = None
    """Name of the corpus to train on, from `select.named`. null: the run's main corpus. An encoder
    may profit from more pairs than people want to read (choosing-pairs.md)."""
    language: str | None = None
    """Language code of the texts in `pairs`. null: `input.target_language`, or English without
    `input`."""

    # The encoder
    model: str = "word-avg"
    """Name of the encoder, such as word-avg, trigram-avg, lstm-avg or bilstm-max. The error message
    for an unknown name lists all names. Names joined by `+`, such as `word-avg+trigram-avg`, are a
    mixture that is trained as one encoder."""
    dim: Size = 300
    """Dimension of word vectors."""
    hidden: Size | None = None
    """Dimension of the recurrent state in each direction. null: the dimension of word vectors."""
    combine: Literal["concat", "mean", "tanh"] = "concat"
    """How to combine the vectors of two directions. concat: concatenate. mean: average. tanh: apply
    a tanh layer."""
    mix: Literal["concat", "add"] = "concat"
    """How to combine the vectors of a mixture's encoders. concat: concatenate. add: add."""
    tags: bool | Literal["start", "end"] = False
    """Tags added to every sentence (W&G, footnote 4). true: a start tag and an end tag. false: no
    tag. start, end: only this tag."""
    initial_vectors: Literal["auto"] | Annotated[str, InputPath(keyword=AUTO)] | None = AUTO
    """Initial word vectors: a file in text form (PARAGRAM, GloVe) or in word2vec's binary form,
    plain or compressed. null: random vectors. auto: the run's own PARAGRAM vectors if they exist
    and have `dim` dimensions, otherwise random vectors. For tasks other than paraphrases, auto
    means null."""
    max_vocabulary: Count | None = 200_000
    """Maximum size of the vocabulary, which contains the most frequent words or trigrams, and then
    the other words of `initial_vectors`. null: no limit."""

    # Training
    epochs: Count = 5
    """Number of passes over all pairs."""
    batch_size: Count = 100
    """Number of pairs in a mini-batch. Each mini-batch is one optimiser step."""
    mega_batch: Count = 40
    """M: number of mini-batches in a mega-batch. Negatives are chosen within a mega-batch."""
    negatives: Literal["other", "same", "both"] = "same"
    """A sentence's negative comes from another pair. same: from the side (first or second) of the
    sentence itself (W&G 3.2.1). other: from the opposite side. both: from either side."""
    margin: PositiveNumber = 0.4
    """δ of the loss: minimum difference between the similarity of the paraphrase and the similarity
    of the negative."""
    learning_rate: PositiveNumber = 0.001
    """Step size of Adam."""
    clip: PositiveNumber | None = None
    """Maximum norm of the gradient. A gradient with a larger norm is scaled down. null: no
    maximum."""
    lambda_c: NonNegativeNumber = 0.0
    """λ_c: factor of the regularisation ‖W‖² of all weights W except word vectors (W&G, Eq. 2)."""
    lambda_w: NonNegativeNumber = 0.0
    """λ_w: factor of the regularisation ‖W − W₀‖² of word vectors W, with initial values W₀ (W&G,
    Eq. 2)."""
    dropout: Rate = 0.0
    """Fraction of word vector components that are set to zero in training."""
    word_dropout: Rate = 0.0
    """Fraction of words whose vectors are set to zero in training."""
    scramble: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Fraction of pairs in which the words of both sentences are shuffled (tasks paraphrases,
    similarity and malstm)."""

    # The run
    checkpoint_every: Count = 5000
    """Number of steps between checkpoints, from which an interrupted training resumes."""
    development: InputFile | InputFiles | None = None
    """Development data of the task paraphrases: a file or folder of STS or SICK, a file of
    judgments, or a list of paths. The weights with the best mean Pearson correlation over the data
    sets are kept. null: the last weights are kept."""
    evaluate_every: Count | None = None
    """Number of steps between evaluations on `development`, rounded up to whole mega-batches. null:
    only at the end of each epoch."""
    patience: Count | None = None
    """Training ends after this many evaluations without a better score. null: after all epochs."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device to train on. auto: a GPU if available. On a GPU, recurrent encoders compute in TF32,
    which is faster. Their losses differ from losses on a CPU by up to 0.006."""

    @model_validator(mode="before")
    @classmethod
    def _has_its_task(cls, values: Any) -> Any:
        given = values if isinstance(values, Mapping) else {}
        if (task := given.get("task")) in sorted(_TASKS - cls.tasks.keys()):
            raise ValueError(f"task: {task} is for `paraloom papers`")
        if keys := sorted((_TASKS | _KEYS) & given.keys() - cls.model_fields):
            raise ValueError(f"{keys[0]}: is for `paraloom papers`")
        return values

    def _check(self) -> None:
        if self.language is not None and self.pairs is None:
            raise ValueError("language: needs pairs; for the corpus, set input.target_language")
        if self.patience is not None and self.development is None:
            raise ValueError("patience: needs development data; set development")

    def chosen(self) -> dict[str, Any]:
        """Return the values of the configuration keys in use. A result's key depends on the values.

        A configuration key whose value and default are null is omitted. A new configuration key
        with the default null therefore outdates no results.
        """
        values, fields = self.model_dump(), type(self).model_fields
        return {
            name: values[name]
            for name in self.keys_in_use()
            if values[name] is not None or fields[name].default is not None
        }

    def of_weights(self) -> dict[str, Any]:
        """Return the values on which the weights depend, with digests in place of files."""
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
        """The score that the task optimises."""
        return "cosine"

    def open_head(self, settings: dict[str, Any]) -> Any:
        """Build the head that the task trains with the encoder, from the head's settings."""
        raise ValueError(f"head: {settings.get('name')} is for `paraloom papers`")

    def completed(self, encoder: Any, words: int) -> Any:
        """Return the encoder with the task's modules added. `words` is the number of distinct words
        that a decoder can predict."""
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
"""Classes of options. Configurations and saved encoders are read as the last class."""


def read_options(values: Any) -> EmbeddingOptions:
    """Convert a mapping to the class `KNOWN[-1]`. An object of this class is returned unchanged."""
    options: EmbeddingOptions = KNOWN[-1].of(values) if isinstance(values, Mapping) else values
    return options


def saved_options(values: Mapping[str, Any]) -> EmbeddingOptions:
    """Build the options of a saved encoder. Keys that `KNOWN[-1]` lacks are ignored, except `cell`,
    on which the weights depend."""
    options = {k: v for k, v in values.items() if k in KNOWN[-1].model_fields}
    if (cell := values.get("cell", "torch")) != "torch":
        options["cell"] = cell
    for source in options.get("pairs") or ():
        source.pop("weight", None)
    return read_options(options)


AnyEmbeddingOptions = Annotated[SerializeAsAny[EmbeddingOptions], BeforeValidator(read_options)]
"""A section `embeddings` of the class `KNOWN[-1]`."""


class ParagramOptions(Options):
    """Training of word vectors on phrase pairs. A phrase is encoded as the mean of its words."""

    dim: Size = 300
    """Dimension of word vectors."""
    epochs: Count = 5
    """Number of passes over all pairs."""
    batch_size: Count = 100
    """Number of pairs in a mini-batch. Each mini-batch is one optimiser step."""
    learning_rate: PositiveNumber = 0.001
    """Step size of Adam."""

    def training(self) -> EmbeddingOptions:
        """Return the options of the encoder whose word vectors are trained."""
        fixed: dict[str, Any] = {"negatives": "other", "mega_batch": 1, "device": "cpu"}
        fixed |= {"initial_vectors": None, "max_vocabulary": None}
        return EmbeddingOptions.of({**fixed, **self.model_dump()})


def _read_saved(values: Any) -> Any:
    return saved_options(values) if isinstance(values, dict) else values


class _Settings(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class Loading(_Settings):
    """How sentence-transformers loads an encoder's folder."""

    native: bool  # whether it loads the folder with its class StaticEmbedding


class EncoderSettings(_Settings):
    """The file config.json in the folder of an encoder. The file is not trusted."""

    format: Literal[1, 2]  # 1 in Paraloom 0.2. Increase it if older code cannot read new folders
    options: Annotated[EmbeddingOptions, BeforeValidator(_read_saved)]
    vocabularies: dict[str, int]  # number of entries by kind
    language: str = ENGLISH
    outputs: Count | None = None
    head: dict[str, Any] | None = None  # arguments of `EmbeddingOptions.open_head`
    sentence_transformers: Loading
