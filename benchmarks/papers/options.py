"""Options of the papers' other systems. Each task has a section in `embeddings`."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from paraloom.models.embeddings.options import EmbeddingOptions, InputFiles, Task
from paraloom.models.options import Count, Fraction, InputFile, Options, PositiveNumber, Rate, Size
from paraloom.pipeline.config import Config

_DOT = ("phrases", "context")
_MARGINS = "phrase pairs, with a margin on dot products (Zhou, Huang and Ji, 2017)"
_NEIGHBOURS = (
    "contiguous text, by predicting the sentences before and after a sentence (Zhelezniak et al., "
    "2018)"
)


class SimilarityOptions(Options):
    """Task similarity: training on labelled pairs with the KL objective of Tai et al. (2015), as in
    Wieting & Gimpel (2017)."""

    data: InputFiles
    """Files or folders of labelled pairs: SICK with its own split, or STS. Each data set of STS is
    split into training (40%), development (10%) and test (50%)."""
    start: InputFile | None = None
    """Folder of a trained model. Training starts from the model's encoder, and `lambda_c` and
    `lambda_w` regularise towards the model's weights."""
    units: Size = 50
    """Number of units of the hidden layer."""
    held_out: Fraction | None = 0.1
    """Fraction of SICK's training pairs that is held out to choose the epoch. null: choose the
    epoch on SICK's trial pairs, as in W&G."""


class MaLSTMOptions(Options):
    """Task malstm: training on labelled pairs with the distance of LSTM states (Mueller &
    Thyagarajan 2016)."""

    data: InputFiles
    """Files or folders of labelled pairs: SICK, or STS. If SICK's test pairs are present, the trial
    pairs are used for training, too. Each data set of STS is split into training (40%), development
    (10%) and test (50%)."""
    pretrain: list[InputFile] = Field(default=[])
    """Files or folders of labelled pairs to train on first. Labels may have any scale."""
    synonyms: InputFile | None = None
    """A thesaurus for additional training pairs with synonyms: a WordNet folder, PPDB or a
    lexicon."""
    augmented: Count = 10_022
    """Number of training pairs to add with synonyms."""
    held_out: Fraction = 0.3
    """Fraction of SICK's training pairs and of `pretrain` that is held out to choose the epoch."""
    patience: Count = 20
    """Training ends after this many epochs without improvement."""
    calibrate: bool = True
    """Predict labels by a local-linear regression on the similarity."""
    entailment: bool = True
    """Train a support vector machine on the vectors for SICK's entailment task."""


class PhrasesOptions(Options):
    """Task phrases: training on phrase pairs with a margin on dot products (Zhou, Huang & Ji
    2017)."""

    table: InputFile
    """Phrase pairs: a table of `paraloom papers extract-phrases`, PPDB, or tab-separated pairs. The
    training data of SemEval-2013 5(a) (a folder) or of Turney 2012 (questions) is also accepted."""
    samples: Count = 29
    """Number k of random phrases that serve as negatives of each pair."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Random fraction of the training pairs to train on."""
    held_out: Rate = 0.1
    """Fraction of the pairs held out for the test, in which the model must find the paraphrase
    among 100 phrases. Another fraction of the same size is held out to choose the epoch. With the
    data of SemEval or Turney, pairs are held out only to choose the epoch."""
    split: Literal["pairs", "phrases"] = "pairs"
    """pairs: hold out random pairs. phrases: hold out random phrases with all their pairs."""
    development: InputFile | None = None
    """Data to choose the epoch, instead of held-out pairs: the training set in the folder of
    SemEval-2013 5(a), or the training questions of Turney 2012."""
    dropout: Rate = 0.5
    """Fraction of the components of each output vector that are set to zero."""
    train_words: bool = False
    """true: train the vectors in `initial_vectors`, too. Random word vectors are always trained."""
    margin: PositiveNumber = 1.0
    """δ: the dot product of a pair must exceed the dot product with a negative by this number."""
    learning_rate: PositiveNumber = 0.3
    """Step size of gradient descent."""
    clip: PositiveNumber = 5.0
    """Maximum norm of the gradient. A gradient with a larger norm is scaled down."""


class ContextOptions(Options):
    """Task context: training to predict the sentences before and after a sentence (Zhelezniak et
    al. 2018)."""

    text: InputFiles
    """Files of contiguous text, which may be compressed."""
    format: Literal["plain", "czeng20", "lines"] = "plain"
    """plain: spaCy splits the text into sentences. czeng20: the last of six columns is a sentence.
    lines: each line is a sentence, as in the Toronto Books Corpus. In the formats czeng20 and
    lines, empty lines separate documents."""
    decoder: Literal["gru", "bow"] = "gru"
    """gru: a layer-normalised GRU predicts each neighbour word by word. bow: all words of both
    neighbours are predicted at once."""
    max_words: Count = 30
    """Maximum number of words of a sentence. Longer sentences are truncated."""
    vector: Literal["encoder", "concat", "mean"] = "encoder"
    """Sentence vector. encoder: the output of the encoder. concat, mean: the concatenated or
    averaged states of both decoders."""
    steps: Size = 5
    """Number of words for which concat and mean unroll the decoders."""
    expand: InputFile | None = None
    """Word vectors. After training, the words in this file are added to the vocabulary by a linear
    map."""

    def _check(self) -> None:
        if self.decoder == "bow" and self.vector != "encoder":
            raise ValueError(
                f"vector: {self.vector}, but a bow decoder has no states to unroll; set "
                "embeddings.context.vector=encoder, too"
            )


class SystemOptions(EmbeddingOptions):
    """The encoder and its training.

    If W&G (Wieting & Gimpel 2017) and ParaNMT (Wieting & Gimpel 2018) agree on a value, this value
    is the default.
    """

    tasks: ClassVar[dict[str, Task]] = {
        "paraphrases": EmbeddingOptions.tasks["paraphrases"]._replace(
            module="paraloom.papers.scrambling"
        ),
        "similarity": Task(
            "paraloom.papers.tasks.similarity",
            "labelled pairs, with a layer that predicts the label (Tai et al., 2015)",
        ),
        "malstm": Task(
            "paraloom.papers.tasks.malstm",
            "labelled pairs, by the distance of the two vectors (Mueller and Thyagarajan, 2016)",
        ),
        "phrases": Task("paraloom.papers.tasks.phrases", _MARGINS),
        "context": Task("paraloom.papers.tasks.context", _NEIGHBOURS),
    }

    cell: Literal["torch", "peephole", "normalised", "cho"] = "torch"
    """Recurrent cell. torch: PyTorch's LSTM or GRU. peephole: an LSTM with peepholes (Gers et al.
    2003), as in W&G. normalised: a layer-normalised GRU. cho: the GRU of Cho et al. (2014)."""
    scramble_variant: Literal["sentences", "after_negatives"] | None = None
    """A variant of `scramble` (W&G, footnote 5). sentences: draw for each sentence, not for each
    pair, whether its words are shuffled. after_negatives: negatives are chosen before words are
    shuffled."""
    scramble_swaps: PositiveNumber | None = None
    """λ: `scramble` makes n swaps of two words, where n has a Poisson distribution with mean λ
    (W&G, footnote 5). null: all words are shuffled."""
    similarity: SimilarityOptions | None = None
    malstm: MaLSTMOptions | None = None
    phrases: PhrasesOptions | None = None
    context: ContextOptions | None = None

    def _check(self) -> None:
        if self.task in _DOT and self.scramble:
            raise ValueError(f"scramble: task {self.task} has no scrambling; set it to 0")
        for key in ("scramble_variant", "scramble_swaps"):
            if getattr(self, key) is not None and not self.scramble:
                raise ValueError(f"{key}: changes how `scramble` works, which is 0; set scramble")
        if self.scramble_variant == "after_negatives" and self.task != "paraphrases":
            raise ValueError(f"scramble_variant: task {self.task} has no negatives; set sentences")
        if self.task != "paraphrases":
            if getattr(self, self.task) is None:
                raise ValueError(
                    f"{self.task}: is missing; this section names the data of task {self.task}"
                )
            for key in ("pairs", "development"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key}: is for task paraphrases, not for {self.task}")
        super()._check()

    def keys_in_use(self) -> Iterable[str]:
        """All keys except the sections of other tasks."""
        others = self.tasks.keys() - {self.task}
        return [name for name in super().keys_in_use() if name not in others]

    @property
    def score(self) -> Literal["cosine", "dot"]:
        """The function of two vectors that the task trains."""
        return "dot" if self.task in _DOT else "cosine"

    @property
    def start(self) -> str | None:
        """The folder of the model from which training starts."""
        return self.similarity.start if self.similarity else None

    @property
    def vector(self) -> str | None:
        """A description of the sentence vector, unless it is the output of the encoder."""
        decoded = self.context is not None and self.context.vector != "encoder"
        return "made of the states of its decoders" if decoded else None

    def open_head(self, settings: dict[str, Any]) -> Any:
        """Return a new head with these settings."""
        from paraloom.papers.heads import open_head

        return open_head(settings)

    def completed(self, encoder: Any, words: int) -> Any:
        """Return the encoder. Task `context` adds decoders that predict `words` words."""
        section = self.context
        if section is None or self.task != "context":
            return encoder
        from paraloom.papers.encoders.context import Context

        if "+" in self.model or encoder.input.kind != "words":
            raise ValueError(f"model: {self.model}, but task context needs one encoder of words")
        return Context(
            encoder,
            decoder=section.decoder,
            outputs=words,
            vector=section.vector,
            steps=section.steps,
            max_words=section.max_words,
        )


class SystemConfig(Config):
    """A run."""

    embeddings: SystemOptions = SystemOptions()
