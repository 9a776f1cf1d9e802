"""Decoding with Transformers' `generate`, the reference engine for models from the Hub."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from paraloom.models.nmt.engines.base import Pieces, Ranked, Sampling, longest_target, torch_device
from paraloom.models.nmt.families.pretrained import PretrainedModel
from paraloom.models.nmt.options import NmtOptions, Precision

_DRAWING = threading.Lock()


class TransformersEngine:
    """A model in torch: one batch at a time, on all threads."""

    def __init__(self, model: PretrainedModel, options: NmtOptions, threads: int) -> None:
        """Load the model; see `build_engine` for the errors."""
        self.device = torch_device(options)
        self.compute_type: Precision = "float16" if options.compute_type == "float16" else "float32"
        torch.set_num_threads(threads)
        self._model = model.torch_model()
        if options.compute_type == "float16":
            self._model.network.half()
        self._model.network.to(self.device)
        tags = len(model.layout.target_prefix)
        self._beam = options.beam
        self._longest = longest_target(options, model.positions - tags)
        self._lock = threading.Lock()
        self.batch_tokens = 8192 if self.device != "cpu" else 1024
        self.parallel, self.converted = 1, None
        self.max_source_subwords = model.positions - len(model.layout.source(()))
        self.max_target_subwords = model.positions - tags - 1

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """Return a function that translates the batch; see `Engine.submit`."""
        return lambda: self._generate(batch, num_hypotheses)

    @contextmanager
    def sampler(self, sampling: Sampling, largest: int) -> Iterator[TransformersSampler]:
        """See `Engine.sampler`; one at a time in a process, since torch has one seed."""
        with _DRAWING:
            yield TransformersSampler(self, sampling)

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """See `Engine.score`."""
        with self._lock:
            found = self._model.log_probs(sources, targets)
        return [sum(probs) / len(probs) for probs in found]

    def _generate(
        self, batch: Sequence[Pieces], num_hypotheses: int, sampling: Sampling | None = None
    ) -> list[Ranked]:
        with self._lock:  # torch uses all threads for one batch
            try:
                return self._model.generate(
                    batch,
                    beam=self._beam,
                    num_hypotheses=num_hypotheses,
                    longest=self._longest,
                    sampling=sampling,
                )
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                raise


class TransformersSampler:
    """Draws with torch's generator, which nothing else uses meanwhile."""

    def __init__(self, engine: TransformersEngine, sampling: Sampling) -> None:
        self._engine, self._sampling = engine, sampling
        torch.manual_seed(sampling.seed)

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """See `Engine.submit`."""
        return lambda: self._engine._generate(batch, num_hypotheses, self._sampling)
