"""Decoding with fairseq's own beam search, the reference engine."""

from collections.abc import Sequence
from typing import Any

import torch

from paraloom.models.nmt.engines.base import (
    Hypothesis,
    Pieces,
    Ranked,
    ReferenceEngine,
    longest_target,
)
from paraloom.models.nmt.families.fairseq import FairseqModel, import_fairseq
from paraloom.models.nmt.options import NmtOptions


class FairseqEngine(ReferenceEngine):
    """A model in fairseq's `SequenceGenerator`."""

    def __init__(self, model: FairseqModel, options: NmtOptions, threads: int) -> None:
        """Load the model; see `build_engine` for the errors."""
        super().__init__(options, threads)
        import_fairseq()
        from fairseq.sequence_generator import SequenceGenerator

        loaded = model.load()
        self._network, self._source, self._target = loaded[:3]
        self._place(self._network)
        self._longest = longest_target(options, loaded.settings.max_target_positions)
        self._generator = SequenceGenerator(
            [self._network],
            self._target,
            beam_size=options.beam,
            max_len_a=0,
            max_len_b=self._longest - 1,  # fairseq counts without the end of sentence
        )
        self.batch_tokens = 8192 if self.device != "cpu" else 2048
        self.max_source_subwords = loaded.settings.max_source_positions - 1
        self.max_target_subwords = loaded.settings.max_target_positions - 1

    @torch.inference_mode()
    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """See `Engine.score`."""
        found = []
        with self._lock:
            for source, target in zip(sources, targets, strict=True):
                ids = [self._target.index(piece) for piece in target]
                expected = torch.tensor([*ids, self._target.eos()], device=self.device)
                given = torch.tensor([[self._target.eos(), *ids]], device=self.device)
                logits, _ = self._network(**self._inputs([source]), prev_output_tokens=given)
                log_probs = torch.log_softmax(logits[0].float(), -1)  # T × V
                found.append(float(log_probs.gather(1, expected[:, None]).mean()))
        return found

    def _inputs(self, batch: Sequence[Pieces]) -> dict[str, torch.Tensor]:
        rows = [
            [*(self._source.index(piece) for piece in pieces), self._source.eos()]
            for pieces in batch
        ]
        longest = max(map(len, rows))
        pad = self._source.pad()
        tokens = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])  # B × T
        lengths = torch.tensor([len(row) for row in rows])
        return {"src_tokens": tokens.to(self.device), "src_lengths": lengths.to(self.device)}

    def _decode(self, batch: Sequence[Pieces], num_hypotheses: int) -> list[Ranked]:
        found = self._generator.generate([], {"net_input": self._inputs(batch)})
        return [[self._hypothesis(made) for made in row[:num_hypotheses]] for row in found]

    def _hypothesis(self, made: dict[str, Any]) -> Hypothesis:
        ids = made["tokens"].tolist()
        # At the length limit fairseq appends the end of sentence by force.
        ended = len(ids) < self._longest
        pieces = [self._target[index] for index in ids[:-1]]
        return Hypothesis(pieces, float(made["score"]), len(ids), ended)
