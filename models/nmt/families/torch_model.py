"""A Transformers model in torch: generation and the log probabilities of given translations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from paraloom.models.nmt.engines.base import Hypothesis, Ranked, Sampling, ranked
from paraloom.models.nmt.families.base import Layout

_CHUNK = 32  # sentences in a batch that is scored


class TorchModel:
    """A network, and the tokens that its ids stand for.

    Args:
        network: a Transformers model for translation.
        source: the encoder's vocabulary by id.
        target: the decoder's vocabulary by id.
        layout: the tokens around subwords.
    """

    def __init__(
        self, network: Any, source: Sequence[str], target: Sequence[str], layout: Layout
    ) -> None:
        self.network = network.eval()
        self._tokens, self._layout = target, layout
        self._source_ids = {token: number for number, token in enumerate(source)}
        self._ids = {token: number for number, token in enumerate(target)}
        self._eos = self._ids["</s>"]
        pad = network.config.pad_token_id
        self._pad = pad if isinstance(pad, int) else self._eos  # any will do: it is masked
        start = [layout.decoder_start] if layout.decoder_start else []
        self._start = [self._ids[token] for token in (*start, *layout.target_prefix)]
        self._barred = [self._ids[token] for token in layout.barred]

    @property
    def device(self) -> torch.device:
        """The network's device."""
        device: torch.device = next(self.network.parameters()).device
        return device

    @torch.inference_mode()
    def log_probs(
        self, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """log p of each target subword and of the end of sentence, natural logarithm."""
        found: list[list[float]] = []
        for first in range(0, len(sources), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            found += self._log_probs(sources[chunk], targets[chunk])
        return found

    def _log_probs(
        self, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        ids = [_numbers(target, self._ids) for target in targets]
        rows = [[*self._start, *row] for row in ids]
        given, _ = self._padded(rows)
        logits = self.network(**self._encoder_input(sources), decoder_input_ids=given).logits
        logits = logits.float()  # n × T × V
        logits[..., self._barred] = -torch.inf
        log_probs = logits.log_softmax(-1)
        found = []
        for row, given_ids in enumerate(ids):
            expected = [*given_ids, self._eos]
            first = len(self._start) - 1
            steps = torch.arange(first, first + len(expected), device=logits.device)
            chosen = torch.tensor(expected, device=logits.device)
            found.append(log_probs[row, steps, chosen].tolist())
        return found

    @torch.inference_mode()
    def generate(
        self,
        sources: Sequence[Sequence[str]],
        *,
        beam: int,
        num_hypotheses: int,
        longest: int,
        sampling: Sampling | None = None,
    ) -> list[Ranked]:
        """Translate a batch with Transformers' `generate`.

        Args:
            longest: most subwords of a translation, end of sentence included.
            sampling: draw translations with torch's global generator (its seed is not used here).
        """
        sequences, scores = self._sequences(sources, beam, num_hypotheses, longest, sampling)
        found: list[Ranked] = []
        for row, source in enumerate(sources):
            of_row = range(row * num_hypotheses, (row + 1) * num_hypotheses)
            pieces = [self._pieces(sequences[at]) for at in of_row]
            if scores is None:
                whole = [made[:-1] for made, _ in pieces]
                probs = self._log_probs([source] * len(whole), whole)
                means = [sum(probs[at]) / len(probs[at]) for at in range(len(whole))]
            else:
                means = [scores[at] for at in of_row]
            hypotheses = []
            for (made, ended), mean in zip(pieces, means, strict=True):
                if scores is not None:  # a forced tag counts in the length, and 0 in the sum
                    mean *= (len(made) + self._forced) / max(len(made), 1)
                subwords = made[:-1] if ended else made
                hypotheses.append(Hypothesis(subwords, mean, len(made), ended))
            found.append(ranked(hypotheses) if sampling else hypotheses)
        return found

    @property
    def _forced(self) -> int:
        """Tokens at the start that the search is made to generate."""
        return len(self._layout.target_prefix) if self._layout.decoder_start else 0

    def _sequences(
        self,
        sources: Sequence[Sequence[str]],
        beam: int,
        num_hypotheses: int,
        longest: int,
        sampling: Sampling | None,
    ) -> tuple[list[list[int]], list[float] | None]:
        import transformers

        forced = self._start[-1] if self._forced else None
        drawn: dict[str, Any] = {"do_sample": True, "top_k": sampling.top_k} if sampling else {}
        if sampling:
            drawn |= {"temperature": sampling.temperature, "top_p": 1.0}
        kind: Any = transformers.GenerationConfig
        settings = kind(
            num_beams=1 if sampling else beam,
            num_return_sequences=num_hypotheses,
            early_stopping=not sampling and beam > 1,
            length_penalty=1.0,
            max_new_tokens=longest + self._forced,
            decoder_start_token_id=self._start[0],
            forced_bos_token_id=forced,
            bos_token_id=self._start[0],
            eos_token_id=self._eos,
            pad_token_id=self._pad,
            bad_words_ids=[[token] for token in self._barred] or None,
            renormalize_logits=bool(self._barred),
            return_dict_in_generate=True,
            output_scores=not sampling and beam > 1,
            **drawn,
        )
        self.network.generation_config = settings  # the folder's must not fill gaps
        result = self.network.generate(**self._encoder_input(sources), generation_config=settings)
        scores = getattr(result, "sequences_scores", None)
        rows = [row[1 + self._forced :] for row in result.sequences.tolist()]
        return rows, None if scores is None else scores.tolist()

    def _pieces(self, ids: Sequence[int]) -> tuple[list[str], bool]:
        """Tokens up to the end of sentence, included, and whether there is one."""
        ended = self._eos in ids
        length = ids.index(self._eos) + 1 if ended else len(ids)
        return [self._tokens[token] for token in ids[:length]], ended

    def _encoder_input(self, sources: Sequence[Sequence[str]]) -> dict[str, torch.Tensor]:
        rows = [_numbers(self._layout.source(source), self._source_ids) for source in sources]
        ids, mask = self._padded(rows)
        return {"input_ids": ids, "attention_mask": mask}

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(map(len, rows))
        ids = [[*row, *[self._pad] * (longest - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
        return (
            torch.tensor(ids, device=self.device),
            torch.tensor(mask, device=self.device),
        )


def _numbers(pieces: Sequence[str], ids: Mapping[str, int]) -> list[int]:
    unknown = ids["<unk>"]
    return [ids.get(piece, unknown) for piece in pieces]
