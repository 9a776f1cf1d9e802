"""What a user can choose about an encoder and its training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from models.embeddings.tasks.options import (
    ContextOptions,
    MaLSTMOptions,
    PhrasesOptions,
    SimilarityOptions,
    TaskOptions,
)

TaskName = Literal["paraphrases", "similarity", "malstm", "phrases", "context"]
SECTIONS: dict[str, type[TaskOptions]] = {
    "similarity": SimilarityOptions,
    "malstm": MaLSTMOptions,
    "phrases": PhrasesOptions,
    "context": ContextOptions,
}
"""The tasks that have a section of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingOptions:
    """An encoder and how it is trained. Defaults are the papers' where they agree.

    W&G is Wieting & Gimpel 2017, ParaNMT Wieting & Gimpel 2018.
    """

    task: TaskName = "paraphrases"
    """What to train on: paraphrases (the corpus), or what the section of this name is about."""
    similarity: SimilarityOptions | None = None
    """Labelled pairs, and the head that predicts their labels."""
    malstm: MaLSTMOptions | None = None
    """Labelled pairs, other pairs to begin with, and a thesaurus."""
    phrases: PhrasesOptions | None = None
    """A phrase table, and how phrases are held against each other."""
    context: ContextOptions | None = None
    """Contiguous text, and the decoders of a sentence's neighbours."""

    # The encoder
    model: str = "word-avg"
    """By name: word-avg, word-sum, trigram-avg, gru, lstm, lstm-avg, bilstm, bilstm-avg,
    bilstm-max, gran, gran-2 to gran-5, bigran; several joined by `+` are trained as one
    (`word-avg+trigram-avg`)."""
    dim: int = 300
    """Length of a word's vector."""
    hidden: int | None = None
    """Length of a recurrent state in each direction; null: as long as a word's vector."""
    cell: Literal["torch", "peephole", "normalised"] = "torch"
    """torch's, an LSTM with peepholes (Gers et al. 2003) as in W&G, or a layer-normalised GRU."""
    combine: Literal["concat", "mean", "tanh"] = "concat"
    """How two directions become one: side by side, their mean, a tanh layer over both."""
    mix: Literal["concat", "add"] = "concat"
    """How the encoders of a mixed model become one."""
    tags: bool = False
    """Put tags before and behind every sentence (W&G, footnote 4)."""
    initial_vectors: str | None = None
    """Word vectors to start from, in text form (PARAGRAM, GloVe, word2vec); null: at random."""
    max_vocabulary: int | None = 200_000
    """The most frequent words (or trigrams) that get a vector; null: all."""
    min_count: int = 1
    """Words that stand in the corpus less often share the vector of unknown words."""

    # Training
    epochs: int = 5
    """How often every pair is seen."""
    steps: int | None = None
    """End after so many mini-batches, however many epochs that takes; null: after `epochs`."""
    batch_size: int = 100
    """Pairs in a mini-batch, which makes one step."""
    mega_batch: int = 40
    """M: mini-batches encoded at once to choose negatives from (1: from the mini-batch itself)."""
    mega_batch_growth: int | None = None
    """Start with M = 1 and add 1 after every so many steps, up to `mega_batch`; null: constant."""
    negatives: Literal["other", "same", "both"] = "other"
    """Where a sentence's negative comes from: the pairs' other side, its own, or both."""
    margin: float = 0.4
    """δ of the loss: how much nearer than the negative the paraphrase has to be."""
    learning_rate: float = 0.001
    """Adam's step size."""
    clip: float | None = None
    """Scale gradients down to this norm where theirs is larger; null: leave them."""
    l2: float = 0.0
    """λ_c: L2 regularisation of all weights but the word vectors."""
    l2_words: float = 0.0
    """λ_w: L2 regularisation of the word vectors towards those they started from."""
    dropout: float = 0.0
    """Share of the numbers in word vectors that are set to zero."""
    word_dropout: float = 0.0
    """Share of words whose whole vector is set to zero."""
    scramble: float = 0.0
    """Share of pairs in both sentences of which the words are put in random order."""

    # The run
    checkpoint_every: int = 5000
    """Steps between two checkpoints, from which training goes on if it was killed."""
    evaluate_every: int | None = None
    """Steps between two evaluations on development data; null: after every epoch."""
    loaders: int = 1
    """Processes that read and tokenise ahead, for corpora that do not fit in memory; 0: none."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto: on a GPU if there is one."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the encoder's matrix products on a GPU; weights are float32 either way."""

    def __post_init__(self) -> None:
        for name in (
            *("dim", "hidden", "max_vocabulary", "min_count", "epochs", "steps", "batch_size"),
            *("mega_batch", "mega_batch_growth", "checkpoint_every", "evaluate_every"),
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: {value} is not a positive number")
        for name in ("margin", "learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name}: {value} is not above 0")
        for name in ("l2", "l2_words", "loaders"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}: {getattr(self, name)} is below 0")
        for name in ("dropout", "word_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is not in [0, 1)")
        if not 0 <= self.scramble <= 1:
            raise ValueError(f"scramble: {self.scramble} is not in [0, 1]")
        if self.task in SECTIONS and self.section is None:
            raise ValueError(f"{self.task}: is missing; task {self.task} finds its data there")

    def chosen(self) -> dict[str, Any]:
        """Every key that counts, for JSON: sections of other tasks do not, nor that there are any.

        >>> EmbeddingOptions.of(EmbeddingOptions(dim=50).chosen()).dim
        50
        """
        others = {name for name in SECTIONS if name != self.task}
        if self.task == "paraphrases":
            others.add("task")
        return {name: value for name, value in asdict(self).items() if name not in others}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The options that `chosen` gave.

        Raises:
            TypeError, ValueError: they are not that.
        """
        sections = {name: SECTIONS[name](**values[name]) for name in SECTIONS if name in values}
        return cls(**{**values, **sections})

    def files(self) -> dict[str, str]:
        """The files and folders that the encoder and its task start from, by key."""
        found = {"initial_vectors": self.initial_vectors} if self.initial_vectors else {}
        if self.section is not None:
            own = self.section.files()
            found.update({f"{self.task}.{key}": path for key, path in own.items()})
        return found

    @property
    def section(self) -> TaskOptions | None:
        """What only the chosen task knows, if it knows something."""
        return getattr(self, self.task) if self.task in SECTIONS else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParagramOptions:
    """Word vectors from phrase pairs (Word Avg with the margin loss)."""

    format: Literal["auto", "ppdb", "tsv", "lexicon"] = "auto"
    """Of the phrase pairs: PPDB's `|||`, tab-separated, `word paraphrase …`; auto looks."""
    dim: int = 300
    """Length of a vector."""
    epochs: int = 5
    """How often every pair is seen."""
    batch_size: int = 100
    """Pairs in a mini-batch, which makes one step."""
    mega_batch: int = 1
    """M: mini-batches encoded at once to choose negatives from."""
    margin: float = 0.4
    """δ of the loss: how much nearer than the negative the paraphrase has to be."""
    learning_rate: float = 0.001
    """Adam's step size."""

    def __post_init__(self) -> None:
        self.training()

    def training(self) -> EmbeddingOptions:
        """The same for the trainer."""
        return EmbeddingOptions(
            dim=self.dim,
            epochs=self.epochs,
            batch_size=self.batch_size,
            mega_batch=self.mega_batch,
            margin=self.margin,
            learning_rate=self.learning_rate,
        )
