"""Decoding with fairseq's own beam search, the reference engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from models.errors import UserError
from models.nmt.checkpoint import build_model, import_fairseq, read_checkpoint
from models.nmt.engine import Hypothesis, Pieces, longest_target

if TYPE_CHECKING:
    from models.nmt.model_folder import ModelFolder
    from models.nmt.options import NmtOptions


class FairseqEngine:
    """A model in fairseq's `SequenceGenerator`: one batch at a time, on all threads."""

    def __init__(self, folder: ModelFolder, options: NmtOptions, threads: int) -> None:
        """Load the model; see `build_engine` for the errors."""
        import torch

        cuda = options.device != "cpu" and torch.cuda.is_available()
        if options.device == "cuda" and not cuda:
            raise UserError("nmt.device: there is no CUDA device; choose cpu or auto")
        if options.compute_type == "float16" and not cuda:
            raise UserError(
                "nmt.compute_type: float16 needs a GPU, and there is none; choose float32"
            )
        import_fairseq()
        from fairseq.sequence_generator import SequenceGenerator

        torch.set_num_threads(threads)
        checkpoint = read_checkpoint(folder)
        model, self._source, self._target = build_model(folder, checkpoint)
        if options.compute_type == "float16":
            model.half()
        self.device = "cuda" if cuda else "cpu"
        model = model.to(self.device)
        self._longest = longest_target(options, checkpoint.settings.max_target_positions)
        self._generator = SequenceGenerator(
            [model],
            self._target,
            beam_size=options.beam,
            max_len_a=0,
            max_len_b=self._longest - 1,  # fairseq counts without the end of sentence
        )
        self._lock = threading.Lock()
        self.batch_tokens = 8192 if cuda else 2048
        self.parallel = 1
        self.max_source_subwords = checkpoint.settings.max_source_positions - 1

    def submit(self, batch: Sequence[Pieces]) -> Callable[[], list[Hypothesis]]:
        """Return a function that translates the batch; see `Engine.submit`."""
        return lambda: self._translate(batch)

    def _translate(self, batch: Sequence[Pieces]) -> list[Hypothesis]:
        import torch

        rows = [
            [*(self._source.index(piece) for piece in pieces), self._source.eos()]
            for pieces in batch
        ]
        longest = max(map(len, rows))
        pad = self._source.pad()
        tokens = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])  # B × T
        lengths = torch.tensor([len(row) for row in rows])
        sample = {
            "net_input": {
                "src_tokens": tokens.to(self.device),
                "src_lengths": lengths.to(self.device),
            }
        }
        with self._lock:  # torch uses all threads for one batch
            try:
                best = [ranked[0] for ranked in self._generator.generate([], sample)]
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                raise
        hypotheses = []
        for hypothesis in best:
            ids = hypothesis["tokens"].tolist()
            # At the length limit fairseq appends the end of sentence by force.
            ended = len(ids) < self._longest
            pieces = [self._target[index] for index in ids[:-1]]
            hypotheses.append(Hypothesis(pieces, float(hypothesis["score"]), len(ids), ended))
        return hypotheses
