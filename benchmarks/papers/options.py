"""Options of the papers' other systems; the section of `embeddings` has the name of its task."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from paraloom.models.embeddings.options import EmbeddingOptions, InputFiles, Task
from paraloom.models.options import Count, Fraction, InputFile, Options, PositiveNumber, Rate, Size
from paraloom.pipeline.config import Config

_DOT = ("phrases", "context")
_MARGINS = "phrase pairs, with a margin on dot products (Zhou, Huang and Ji, 2017)"
_NEIGHBOURS = (
    "contiguous text, by predicting the sentences before and after each (Zhelezniak et al., 2018)"
)


class SimilarityOptions(Options):
    """Task similarity: labelled pairs, KL objective (Tai et al. 2015; Wieting & Gimpel 2017)."""

    data: InputFiles
    """Files or folders of labelled pairs: SICK with its own split, or STS, each data set of which
    is split 40/10/50 into training, development and test."""
    start: InputFile | None = None
    """Folder of a trained model: training starts from its encoder, and `lambda_c` and
    `lambda_w` pull towards it."""
    units: Size = 50
    """Units of the hidden layer over products and distances."""
    held_out: Fraction | None = 0.1
    """Fraction of SICK's training pairs left out, to choose the epoch; null: SICK's trial pairs
    choose it, as in W&G."""


class MaLSTMOptions(Options):
    """Task malstm: labelled pairs, distance of LSTM states (Mueller & Thyagarajan 2016)."""

    data: InputFiles
    """Files or folders of labelled pairs: SICK, or STS. If SICK's test pairs are present, SICK's
    trial pairs are also training pairs. Otherwise, the trial pairs are used for the test. Each data
    set of STS is split 40/10/50 into training, development and test."""
    pretrain: list[InputFile] = Field(default=[])
    """Files or folders of other labelled pairs to train on first, on any scale."""
    synonyms: InputFile | None = None
    """A thesaurus to make more training pairs with: a WordNet folder, PPDB text or a lexicon."""
    augmented: Count = 10_022
    """Number of pairs made with synonyms."""
    held_out: Fraction = 0.3
    """Fraction of SICK's training pairs, and of `pretrain`, left out to choose the epoch."""
    patience: Count = 20
    """Training ends after this many epochs without improvement."""
    calibrate: bool = True
    """Predict labels by local-linear regression on the distance, not by the distance itself."""
    entailment: bool = True
    """Report SICK's entailment with a support vector machine on the vectors."""


class PhrasesOptions(Options):
    """Task phrases: phrase pairs, contrastive margin on dot products (Zhou, Huang & Ji 2017)."""

    table: InputFile
    """Phrase pairs: the output of `paraloom papers extract-phrases`, PPDB, or tab-separated; plain
    or gzip. To train on a phrase task's own data: the folder of SemEval-2013 5(a), or a file of
    Turney's (2012) training questions."""
    samples: Count = 29
    """k: random phrases of the table that serve as negatives of each pair."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Fraction of the training pairs, sampled at random, to train on."""
    held_out: Rate = 0.1
    """Fraction of the pairs left out for the test; as many are left out to choose the epoch. The
    test is to find the paraphrase among 100."""
    split: Literal["pairs", "phrases"] = "pairs"
    """What is left out at random: pairs, or phrases with all their pairs, so that one phrase of
    each test pair is new."""
    development: InputFile | None = None
    """Data that choose the epoch instead of left-out pairs: the folder of SemEval-2013 5(a), of
    which the training set is used, or a file of Turney's (2012) training questions."""
    dropout: Rate = 0.5
    """Fraction of the components of the network's output set to zero."""
    train_words: bool = False
    """Train `initial_vectors`, too; random word vectors are always trained. An average of vectors
    that are not trained is the paper's baseline, without any training."""
    margin: PositiveNumber = 1.0
    """δ: the paraphrase's dot product must exceed a negative's by this much."""
    learning_rate: PositiveNumber = 0.3
    """Step size of plain gradient descent."""
    clip: PositiveNumber = 5.0
    """Gradients with a larger norm are scaled down to this norm."""


class ContextOptions(Options):
    """Task context: predict the sentences before and after each (Zhelezniak et al. 2018)."""

    text: InputFiles
    """Files of contiguous text, plain or gzip."""
    format: Literal["plain", "czeng20", "lines"] = "plain"
    """plain: spaCy splits the text into sentences. czeng20: the last of six columns is a sentence.
    lines: each line is a sentence, as in the Toronto Books Corpus. In czeng20 and lines, empty
    lines separate documents."""
    decoder: Literal["gru", "bow"] = "gru"
    """Predicts the two sentences: a layer-normalised GRU for each, or all words at once."""
    max_words: Count = 30
    """Longer sentences are truncated to this many words."""
    vector: Literal["encoder", "concat", "mean"] = "encoder"
    """Vector of a sentence: the encoder's, or the states of both decoders, concatenated or
    averaged."""
    steps: Size = 5
    """Number of words for which the decoders are unrolled."""
    expand: InputFile | None = None
    """Word vectors; a linear map adds their other words to the vocabulary."""

    def _check(self) -> None:
        if self.decoder == "bow" and self.vector != "encoder":
            raise ValueError(
                f"vector: {self.vector}, but a bow decoder has no states to unroll; set "
                "embeddings.context.vector=encoder, too"
            )


class SystemOptions(EmbeddingOptions):
    """The encoder and its training. Defaults are the papers' values where the papers agree.

    W&G is Wieting & Gimpel 2017, ParaNMT is Wieting & Gimpel 2018.
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
    """Recurrent cell: torch's, an LSTM with peepholes (Gers et al. 2003) as in W&G, a
    layer-normalised GRU, or the GRU of Cho et al. (2014), which resets states before the product
    with weights."""
    scramble_variant: Literal["sentences", "after_negatives"] | None = None
    """A variant of `scramble` (W&G, footnote 5): sentences are chosen singly, not both of a pair;
    or negatives are chosen before words are shuffled. null: neither."""
    scramble_swaps: PositiveNumber | None = None
    """λ: `scramble` swaps two words n times, with n from a Poisson distribution (W&G, footnote 5);
    null: all words are shuffled."""
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
                    f"{self.task}: is missing; task {self.task} reads its data from there"
                )
            for key in ("pairs", "development"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key}: is for task paraphrases, not for {self.task}")
        super()._check()

    def keys_in_use(self) -> Iterable[str]:
        """All keys but the sections of other tasks."""
        others = self.tasks.keys() - {self.task}
        return [name for name in super().keys_in_use() if name not in others]

    @property
    def score(self) -> Literal["cosine", "dot"]:
        """What the task trains: the cosines of vectors, or their dot products."""
        return "dot" if self.task in _DOT else "cosine"

    @property
    def start(self) -> str | None:
        """The folder of the encoder that training starts from."""
        return self.similarity.start if self.similarity else None

    @property
    def vector(self) -> str | None:
        """What a sentence's vector is, if not the output of the encoder `model`."""
        decoded = self.context is not None and self.context.vector != "encoder"
        return "made of the states of its decoders" if decoded else None

    def open_head(self, settings: dict[str, Any]) -> Any:
        """The head with these settings."""
        from paraloom.papers.heads import open_head

        return open_head(settings)

    def completed(self, encoder: Any, words: int) -> Any:
        """The encoder; for the task `context`, with decoders that predict this many words."""
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
