"""What a user can choose about each task; a section of `embeddings` has the name of its task."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

PATHS = {"paths": True}
"""Metadata of a field that names a file or folder, or a list of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOptions:
    """What all sections have: they know which of their keys name files."""

    def files(self) -> dict[str, str]:
        """The files and folders that the task reads, by key; `data[0]` where there is a list."""
        found = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if not item.metadata or value is None:
                continue
            if isinstance(value, str):
                found[item.name] = value
            else:
                found.update({f"{item.name}[{i}]": path for i, path in enumerate(value)})
        return found

    def without_files(self) -> dict[str, Any]:
        """The other keys: what counts beside the files' content, wherever they lie."""
        paths = {item.name for item in fields(self) if item.metadata}
        return {name: value for name, value in asdict(self).items() if name not in paths}


@dataclass(frozen=True, kw_only=True, slots=True)
class SimilarityOptions(TaskOptions):
    """Labelled similarity by the KL objective (Tai et al. 2015; Wieting & Gimpel 2017, 4.3)."""

    data: list[str] = field(metadata=PATHS)
    """Files or folders of labelled pairs: SICK, or STS, of which every set is cut 40/10/50."""
    start: str | None = field(default=None, metadata=PATHS)
    """Folder of a trained model, whose encoder is taken and which `l2` and `l2_words` pull to."""
    units: int = 50
    """Of the hidden layer over products and distances."""
    held_out: float = 0.1
    """Share of SICK's training pairs that choose the epoch."""

    def __post_init__(self) -> None:
        _check_data(self.data, self.held_out)
        if self.units < 1:
            raise ValueError(f"units: {self.units} is not a positive number")


@dataclass(frozen=True, kw_only=True, slots=True)
class MaLSTMOptions(TaskOptions):
    """MaLSTM (Mueller & Thyagarajan 2016): labelled similarity as a distance of LSTM states."""

    data: list[str] = field(metadata=PATHS)
    """Files or folders of labelled pairs: SICK, or STS, of which every set is cut 40/10/50."""
    pretrain: list[str] = field(default_factory=list, metadata=PATHS)
    """Files or folders of other labelled pairs to train on first, on any scale."""
    synonyms: str | None = field(default=None, metadata=PATHS)
    """A thesaurus for more training pairs: WordNet's folder, PPDB text or a lexicon."""
    augmented: int = 10_022
    """How many pairs synonyms add."""
    held_out: float = 0.3
    """Share of SICK's training pairs, and of `pretrain`, that choose the epoch."""
    patience: int = 20
    """Epochs without a better one after which training ends."""
    calibrate: bool = True
    """Predict labels by local-linear regression on the distance, not by the distance itself."""
    entailment: bool = True
    """Report SICK's entailment by a support vector machine on the vectors."""

    def __post_init__(self) -> None:
        _check_data(self.data, self.held_out)
        for name in ("augmented", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is not a positive number")


def _check_data(data: list[str], held_out: float) -> None:
    if not data:
        raise ValueError("data: names no file")
    if not 0 < held_out < 1:
        raise ValueError(f"held_out: {held_out} is not between 0 and 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class PhrasesOptions(TaskOptions):
    """Phrases by a contrastive margin on dot products (Zhou, Huang & Ji 2017)."""

    table: str = field(metadata=PATHS)
    """Phrase pairs: what `paraloom phrases` writes, PPDB, or tab-separated; plain or gzip."""
    drawn: int = 29
    """k: phrases drawn at random, which every pair of a mini-batch is held against."""
    share: float = 1.0
    """Of the table's pairs, drawn at random, that are trained on."""
    held_out: float = 0.1
    """Share of phrases whose pairs are kept for the test: choose the paraphrase among 100."""
    margin: float = 1.0
    """δ: how much larger than that of a drawn phrase the paraphrase's dot product has to be."""
    learning_rate: float = 0.3
    """Of plain gradient steps."""
    clip: float = 5.0
    """Scale gradients down to this norm where theirs is larger."""

    def __post_init__(self) -> None:
        if self.drawn < 1:
            raise ValueError(f"drawn: {self.drawn} is not a positive number")
        for name in ("margin", "learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)} is not above 0")
        if not 0 < self.share <= 1:
            raise ValueError(f"share: {self.share} is not in (0, 1]")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out: {self.held_out} is not in [0, 1)")


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextOptions(TaskOptions):
    """The sentences before and behind each (Zhelezniak et al. 2018), from contiguous text."""

    text: list[str] = field(metadata=PATHS)
    """Files of contiguous text, plain or gzip."""
    format: Literal["plain", "czeng20"] = "plain"
    """plain: spaCy finds the sentences; czeng20: a row each, and empty lines between documents."""
    decoder: Literal["gru", "bow"] = "gru"
    """What predicts the two sentences: a normalised GRU for each, or all words at once."""
    max_words: int = 30
    """Of a sentence that is trained on; what is longer is cut."""
    vector: Literal["encoder", "concat", "mean"] = "encoder"
    """A sentence's vector: the encoder's, or the states of both decoders, joined or averaged."""
    steps: int = 5
    """For how many words the decoders are unrolled."""
    expand: str | None = field(default=None, metadata=PATHS)
    """Word vectors in text form, whose other words are known too, through a linear map."""

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("text: names no file")
        for name in ("max_words", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is not a positive number")
        if self.decoder == "bow" and self.vector != "encoder":
            raise ValueError(f"vector: {self.vector}, but a bow decoder has no states to unroll")
