"""What a user may choose about neural translation."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class NmtTrainingOptions:
    """How a model is trained; the defaults suit 10,000 to 100,000 short pairs on a laptop's CPU."""

    pieces: int = 4000
    """SentencePiece pieces, of both languages together (fewer where the text has fewer)."""
    layers: int = 3
    """Transformer layers, in the encoder and in the decoder each."""
    dim: int = 256
    """Width of the model."""
    heads: int = 4
    """Attention heads."""
    ffn: int = 1024
    """Width of the feed-forward layers."""
    dropout: float = 0.1
    """Share of activations dropped in training."""
    label_smoothing: float = 0.1
    """Probability mass spread over the whole vocabulary."""
    learning_rate: float = 0.002
    """Highest learning rate of Adam; rises linearly, then falls with the inverse square root."""
    warmup: int = 200
    """Updates in which the learning rate rises."""
    updates: int = 1000
    """Updates in all."""
    batch_tokens: int = 4096
    """Target subwords in an update."""
    checkpoints: int = 5
    """Evenly spaced checkpoints, of which the held-out part chooses."""
    held_out: int = 500
    """Pairs kept from training, for the choice of the checkpoint and for BLEU."""

    def __post_init__(self) -> None:
        counts = [item.name for item in fields(self) if item.type == "int"]
        for key in counts:
            if getattr(self, key) < 1:
                raise ValueError(f"{key}: must be at least 1")
        for key in ("dropout", "label_smoothing"):
            if not 0 <= getattr(self, key) < 1:
                raise ValueError(f"{key}: must be at least 0 and less than 1")
        if self.learning_rate <= 0:
            raise ValueError("learning_rate: must be more than 0")
        if self.dim % self.heads or self.dim % 2:
            raise ValueError("dim: must be even and a multiple of heads")
        if self.checkpoints > self.updates:
            raise ValueError("checkpoints: must not be more than updates")


@dataclass(frozen=True, kw_only=True, slots=True)
class NmtOptions:
    """Which model translates, and how."""

    model: str | None = None
    """Folder of a model; null trains one on the input."""
    engine: Literal["ctranslate2", "fairseq"] = "ctranslate2"
    """What decodes: CTranslate2 is several times faster, fairseq is the reference."""
    beam: int = 12
    """Hypotheses kept at each step; the best one is the translation."""
    compute_type: Literal["float32", "float16", "int8"] = "float32"
    """Number type of the weights: float16 on a GPU only, int8 with CTranslate2 only."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to decode; auto takes a GPU where there is one that works."""
    batch_tokens: int | None = None
    """Source subwords in a batch, padding included; null chooses by engine and device."""
    max_source_subwords: int = 200
    """Longer sources are rejected; a translation may have twice as many subwords."""
    training: NmtTrainingOptions = field(default_factory=NmtTrainingOptions)
    """How a model is trained where none is given."""

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise ValueError("beam: must be at least 1")
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise ValueError("batch_tokens: must be at least 1")
        if not 1 <= self.max_source_subwords <= 16_000:  # twice this must fit an int16 column
            raise ValueError("max_source_subwords: must be between 1 and 16,000")
        if self.engine == "fairseq" and self.compute_type == "int8":
            raise ValueError("compute_type: fairseq has no int8; choose engine ctranslate2")
        if self.device == "cpu" and self.compute_type == "float16":
            raise ValueError("compute_type: float16 needs a GPU; choose float32 or int8 on a CPU")
