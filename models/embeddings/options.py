"""What a user can choose about an encoder and its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingOptions:
    """An encoder and how it is trained; the defaults are the papers' where they agree."""

    model: str = "word-avg"
    """Encoder by name; several joined by `+` are trained jointly (`word-avg+trigram-avg`)."""
    dim: int = 300
    """Length of a word's vector, and of a recurrent encoder's state in each direction."""

    epochs: int = 5
    """How often every pair is seen."""
    batch_size: int = 100
    """Pairs in a mini-batch, which makes one step."""
    mega_batch: int = 40
    """M: mini-batches encoded at once to choose negatives from (1: from the mini-batch itself)."""
    negatives: Literal["other", "same", "both"] = "other"
    """Where a sentence's negative comes from: the pairs' other side, its own, or both."""
    margin: float = 0.4
    """δ of the loss: how much nearer than the negative the paraphrase has to be."""
    learning_rate: float = 0.001
    """Adam's step size."""

    max_vocabulary: int | None = 200_000
    """The most frequent words (or trigrams) that get a vector; null keeps all."""
    min_count: int = 1
    """Words that stand in the corpus less often share the vector of unknown words."""

    def __post_init__(self) -> None:
        for name in ("dim", "epochs", "batch_size", "mega_batch", "min_count"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is not a positive number")
        for name in ("margin", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)} is not above 0")


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
        EmbeddingOptions(
            dim=self.dim,
            epochs=self.epochs,
            batch_size=self.batch_size,
            mega_batch=self.mega_batch,
            margin=self.margin,
            learning_rate=self.learning_rate,
        )
