"""Interface of the decoding engines, and what the engines in torch share."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

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

Submit = Callable[[Sequence[Pieces], int], Callable[[], list[Ranked]]]
"""A function as `Engine.submit`."""


class Engine(ABC):
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
    parallel: int = 1
    """Number of batches decoded in parallel."""
    converted: str | None = None
    """SHA-256 of the files that it loaded, if the model was converted for it."""

    @abstractmethod
    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """Start to translate a batch; return a function that waits for the hypotheses.

        That function raises the engine's errors, such as too little memory.

        Args:
            num_hypotheses: translations of each source, at most the beam size.
        """

    @abstractmethod
    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """log p(target | source) per subword, end of sentence included, of each pair."""

    def sampler(self, seed: int, largest: int) -> AbstractContextManager[Submit]:
        """A function as `submit` that draws translations, ranked by score; waits for a free device.

        The order of batches decides what is drawn. `NmtOptions` lets only CTranslate2 sample.

        Args:
            largest: the most sentences of a batch.
        """
        raise NotImplementedError


class ReferenceEngine(Engine):
    """An engine in torch: one batch at a time, on all threads, or on the first GPU of `devices`."""

    def __init__(self, options: NmtOptions, threads: int) -> None:
        import torch

        self.device = torch_device(options)
        self.compute_type = "float16" if options.compute_type == "float16" else "float32"
        torch.set_num_threads(threads)
        self._lock = threading.Lock()

    def _place(self, network: Any) -> None:
        """Put a network on the device, with the number type."""
        if self.compute_type == "float16":
            network.half()
        network.to(self.device)

    @abstractmethod
    def _decode(self, batch: Sequence[Pieces], num_hypotheses: int) -> list[Ranked]:
        """Translate a batch."""

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """Return a function that translates the batch; see `Engine.submit`."""
        import torch

        def wait() -> list[Ranked]:
            with self._lock:
                try:
                    return self._decode(batch, num_hypotheses)
                except torch.cuda.OutOfMemoryError:
                    torch.cuda.empty_cache()
                    raise

        return wait


def longest_target(options: NmtOptions, positions: int) -> int:
    """Length limit of translations in subwords, end of sentence included, for every engine."""
    return min(2 * options.max_source_subwords, positions)


def torch_device(options: NmtOptions) -> str:
    """The device of an engine in torch: cpu, or the first GPU of `devices`, as cuda:0."""
    import torch

    found = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    gpus = gpu.chosen(options, found)
    gpu.check_type(options, gpus)
    return f"cuda:{gpus[0]}" if gpus else "cpu"
