"""Interface of the decoding engines."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from models.nmt.options import NmtOptions

Pieces = Sequence[str]


class Hypothesis(NamedTuple):
    """The best translation of a sentence."""

    pieces: list[str]
    """Target subwords, without the end of sentence."""
    score: float
    """log p(translation | source) / subwords, natural logarithm."""
    subwords: int
    """Target subwords, end of sentence included."""
    ended: bool
    """False if decoding stopped at the length limit; then it is not a translation."""


class Engine(Protocol):
    """A loaded model. `submit` may be called from several threads at once."""

    device: str
    """Device: cpu or cuda."""
    batch_tokens: int
    """Default number of source subwords in a batch, padding included."""
    max_source_subwords: int
    """Length of the longest source that the model can encode, without the end of sentence."""
    parallel: int
    """Number of batches decoded in parallel."""

    def submit(self, batch: Sequence[Pieces]) -> Callable[[], list[Hypothesis]]:
        """Start to translate a batch; return a function that waits for the hypotheses.

        That function raises the engine's errors, such as too little memory.
        """
        ...


def longest_target(options: NmtOptions, positions: int) -> int:
    """Length limit of translations in subwords, end of sentence included, for every engine."""
    return min(2 * options.max_source_subwords, positions)
