"""Interface of the decoding engines."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from paraloom.models.errors import UserError
from paraloom.models.nmt import gpu
from paraloom.models.nmt.options import NmtOptions, Precision

Pieces = Sequence[str]


class Hypothesis(NamedTuple):
    """A translation of a sentence."""

    pieces: list[str]
    """Target subwords, without tags and the end of sentence."""
    score: float
    """log p(translation | source) / subwords, natural logarithm."""
    subwords: int
    """Target subwords, end of sentence included."""
    ended: bool
    """False if decoding stopped at the length limit; then it is not a translation."""


Ranked = list[Hypothesis]
"""Translations of one source, best first."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Translations drawn at random, one subword after another, instead of the beam's best.

    Attributes:
        top_k: subwords to draw from, the most likely ones; 0: all.
        temperature: below 1, likely subwords are drawn more often than the model says.
        seed: the same seed and the same batches give the same translations.
    """

    top_k: int = 10
    temperature: float = 1.0
    seed: int = 1


class Engine(Protocol):
    """A loaded model. `submit` and `score` may be called from several threads at once."""

    device: str
    """Device: cpu or cuda (in torch with a number, as cuda:0)."""
    compute_type: Precision
    """Number type of the loaded weights."""
    batch_tokens: int
    """Default number of source subwords in a batch, padding included."""
    max_source_subwords: int
    """Length of the longest source that the model can encode, without the end of sentence."""
    max_target_subwords: int
    """Length of the longest target that the model can score, without the end of sentence."""
    parallel: int
    """Number of batches decoded in parallel."""

    @property
    def converted(self) -> str | None:
        """SHA-256 of the files that it loaded, if the model was converted for it."""

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """Start to translate a batch; return a function that waits for the hypotheses.

        That function raises the engine's errors, such as too little memory.

        Args:
            num_hypotheses: translations of each source, at most the beam size.
        """
        ...

    def sampler(self, sampling: Sampling, largest: int) -> "AbstractContextManager[Sampler]":
        """The same model, drawing from its first state of the seed; waits for a free device.

        Args:
            largest: the most sentences of a batch.
        """
        ...

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """log p(target | source) per subword, end of sentence included, of each pair."""
        ...


class Sampler(Protocol):
    """An engine that samples. The order of batches decides what is drawn."""

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """As `Engine.submit`, with translations in the order of their scores."""
        ...


def longest_target(options: NmtOptions, positions: int) -> int:
    """Length limit of translations in subwords, end of sentence included, for every engine."""
    return min(2 * options.max_source_subwords, positions)


def on_accelerator(options: NmtOptions, accelerator: str | None) -> NmtOptions:
    """The options on a worker that was asked for with `accelerator`: a GPU, or an error."""
    if options.device == "auto" and gpu.required(accelerator):
        return options.replace(device="cuda")
    return options


def torch_device(options: NmtOptions) -> str:
    """The device of an engine in torch: cpu, or the first GPU of `devices`, as cuda:0."""
    import torch

    found = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    if gpus := gpu.chosen(options, found):
        return f"cuda:{gpus[0]}"
    if options.compute_type == "float16":
        raise UserError("nmt.compute_type: float16 needs a GPU, and there is none; choose float32")
    return "cpu"


def ranked(hypotheses: list[Hypothesis]) -> Ranked:
    """Hypotheses by score, best first."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
