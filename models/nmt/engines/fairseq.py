"""Decoding with fairseq's own beam search, the reference engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from paraloom.models.errors import UserError
from paraloom.models.nmt.checkpoint import build_model, import_fairseq, read_checkpoint
from paraloom.models.nmt.engines.base import (
    Hypothesis,
    Pieces,
    Ranked,
    Sampler,
    Sampling,
    longest_target,
    torch_device,
)

if TYPE_CHECKING:
    import torch

    from paraloom.models.nmt.model_folder import ModelFolder
    from paraloom.models.nmt.options import NmtOptions, Precision


class FairseqEngine:
    """A model in fairseq's `SequenceGenerator`: one batch at a time, on all threads."""

    def __init__(self, folder: ModelFolder, options: NmtOptions, threads: int) -> None:
        """Load the model; see `build_engine` for the errors."""
        import torch

        self.device = torch_device(options)
        self.compute_type: Precision = "float16" if options.compute_type == "float16" else "float32"
        import_fairseq()
        from fairseq.sequence_generator import SequenceGenerator

        torch.set_num_threads(threads)
        checkpoint = read_checkpoint(folder)
        model, self._source, self._target = build_model(folder, checkpoint)
        if options.compute_type == "float16":
            model.half()
        self._network = model = model.to(self.device)
        self._longest = longest_target(options, checkpoint.settings.max_target_positions)
        self._generator = SequenceGenerator(
            [model],
            self._target,
            beam_size=options.beam,
            max_len_a=0,
            max_len_b=self._longest - 1,  # fairseq counts without the end of sentence
        )
        self._lock = threading.Lock()
        self.batch_tokens = 8192 if self.device != "cpu" else 2048
        self.parallel, self.converted = 1, None
        self.max_source_subwords = checkpoint.settings.max_source_positions - 1
        self.max_target_subwords = checkpoint.settings.max_target_positions - 1

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """Return a function that translates the batch; see `Engine.submit`."""
        return lambda: self._translate(batch, num_hypotheses)

    def sampler(self, sampling: Sampling, largest: int) -> AbstractContextManager[Sampler]:
        """See `Engine.sampler`."""
        raise UserError("nmt.engine: fairseq does not sample here; choose engine ctranslate2")

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """See `Engine.score`."""
        import torch

        found = []
        with self._lock, torch.inference_mode():
            for source, target in zip(sources, targets, strict=True):
                ids = [self._target.index(piece) for piece in target]
                expected = torch.tensor([*ids, self._target.eos()], device=self.device)
                given = torch.tensor([[self._target.eos(), *ids]], device=self.device)
                inputs = self._inputs([source])
                logits, _ = self._network(**inputs, prev_output_tokens=given)
                log_probs = torch.log_softmax(logits[0].float(), -1)  # T × V
                found.append(float(log_probs.gather(1, expected[:, None]).mean()))
        return found

    def _inputs(self, batch: Sequence[Pieces]) -> dict[str, torch.Tensor]:
        import torch

        rows = [
            [*(self._source.index(piece) for piece in pieces), self._source.eos()]
            for pieces in batch
        ]
        longest = max(map(len, rows))
        pad = self._source.pad()
        tokens = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])  # B × T
        lengths = torch.tensor([len(row) for row in rows])
        return {"src_tokens": tokens.to(self.device), "src_lengths": lengths.to(self.device)}

    def _translate(self, batch: Sequence[Pieces], num_hypotheses: int) -> list[Ranked]:
        import torch

        with self._lock:  # torch uses all threads for one batch
            try:
                found = self._generator.generate([], {"net_input": self._inputs(batch)})
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                raise
        return [[self._hypothesis(made) for made in row[:num_hypotheses]] for row in found]

    def _hypothesis(self, made: dict[str, Any]) -> Hypothesis:
        ids = made["tokens"].tolist()
        # At the length limit fairseq appends the end of sentence by force.
        ended = len(ids) < self._longest
        pieces = [self._target[index] for index in ids[:-1]]
        return Hypothesis(pieces, float(made["score"]), len(ids), ended)
