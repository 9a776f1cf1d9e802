"""Decoding with Transformers' `generate`, the reference engine for models from the Hub."""

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
from paraloom.models.nmt.families.base import TokenLayout
from paraloom.models.nmt.options import NmtOptions

_CHUNK = 32  # sentences in a batch that is scored


class TorchModel:
    """A Transformers model for translation, and the tokens that its ids stand for.

    Args:
        source: the encoder's vocabulary by id.
        target: the decoder's vocabulary by id.
    """

    def __init__(
        self, network: Any, source: Sequence[str], target: Sequence[str], layout: TokenLayout
    ) -> None:
        self.network, self.tokens, self.layout = network.eval(), target, layout
        self._source_ids = {token: number for number, token in enumerate(source)}
        self._ids = {token: number for number, token in enumerate(target)}
        self.eos = self._ids["</s>"]
        pad = network.config.pad_token_id
        self.pad = pad if isinstance(pad, int) else self.eos  # any will do: it is masked
        start = [layout.decoder_start] if layout.decoder_start else []
        self.start = [self._ids[token] for token in (*start, *layout.target_prefix)]
        self.barred = [self._ids[token] for token in layout.barred]

    @torch.inference_mode()
    def log_probs(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[list[float]]:
        """log p of each target subword and of the end of sentence, natural logarithm."""
        found: list[list[float]] = []
        for first in range(0, len(sources), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            found += self._log_probs(sources[chunk], targets[chunk])
        return found

    def _log_probs(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[list[float]]:
        unknown = self._ids["<unk>"]
        ids = [[self._ids.get(piece, unknown) for piece in target] for target in targets]
        given, _ = self._padded([[*self.start, *row] for row in ids])
        logits = self.network(**self.encoder_input(sources), decoder_input_ids=given).logits
        logits = logits.float()  # n × T × V
        logits[..., self.barred] = -torch.inf
        log_probs = logits.log_softmax(-1)
        found = []
        for row, given_ids in enumerate(ids):
            expected = [*given_ids, self.eos]
            first = len(self.start) - 1
            steps = torch.arange(first, first + len(expected), device=logits.device)
            chosen = torch.tensor(expected, device=logits.device)
            found.append(log_probs[row, steps, chosen].tolist())
        return found

    def encoder_input(self, sources: Sequence[Pieces]) -> dict[str, torch.Tensor]:
        """Sources as arguments of the network."""
        unknown = self._source_ids["<unk>"]
        rows = [
            [self._source_ids.get(piece, unknown) for piece in self.layout.source(source)]
            for source in sources
        ]
        ids, mask = self._padded(rows)
        return {"input_ids": ids, "attention_mask": mask}

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        device = next(self.network.parameters()).device
        longest = max(map(len, rows))
        ids = [[*row, *[self.pad] * (longest - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
        return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


class TransformersEngine(ReferenceEngine):
    """A Transformers model.

    Args:
        positions: most tokens of a source, and of a target, tags and ends of sentence included.
    """

    def __init__(
        self, model: TorchModel, positions: int, options: NmtOptions, threads: int
    ) -> None:
        super().__init__(options, threads)
        self._model = model
        self._place(model.network)
        tags = len(model.layout.target_prefix)
        # Tokens at the start that the search is made to generate.
        self._forced = tags if model.layout.decoder_start else 0
        self._beam = options.beam
        self._longest = longest_target(options, positions - tags)
        self.batch_tokens = 8192 if self.device != "cpu" else 1024
        self.max_source_subwords = positions - len(model.layout.source(()))
        self.max_target_subwords = positions - tags - 1

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """See `Engine.score`."""
        with self._lock:
            found = self._model.log_probs(sources, targets)
        return [sum(probs) / len(probs) for probs in found]

    @torch.inference_mode()
    def _decode(self, batch: Sequence[Pieces], num_hypotheses: int) -> list[Ranked]:
        result = self._generate(batch, num_hypotheses)
        made = [self._tokens(ids[1 + self._forced :]) for ids in result.sequences.tolist()]
        found: list[Ranked] = []
        for row, source in enumerate(batch):
            of_row = slice(row * num_hypotheses, (row + 1) * num_hypotheses)
            if (scores := getattr(result, "sequences_scores", None)) is None:  # without a beam
                whole = [tokens[:-1] for tokens in made[of_row]]
                probs = self._model.log_probs([source] * len(whole), whole)
                means = [sum(each) / len(each) for each in probs]
            else:  # a forced tag counts in the length, and 0 in the sum
                lengths = [len(tokens) for tokens in made[of_row]]
                means = [
                    mean * ((length + self._forced) / max(length, 1))
                    for mean, length in zip(scores[of_row].tolist(), lengths, strict=True)
                ]
            found.append([*map(self._hypothesis, made[of_row], means)])
        return found

    def _generate(self, batch: Sequence[Pieces], num_hypotheses: int) -> Any:
        import transformers

        model = self._model
        kind: Any = transformers.GenerationConfig
        settings = kind(
            num_beams=self._beam,
            num_return_sequences=num_hypotheses,
            early_stopping=self._beam > 1,
            length_penalty=1.0,
            max_new_tokens=self._longest + self._forced,
            decoder_start_token_id=model.start[0],
            forced_bos_token_id=model.start[-1] if self._forced else None,
            bos_token_id=model.start[0],
            eos_token_id=model.eos,
            pad_token_id=model.pad,
            bad_words_ids=[[token] for token in model.barred] or None,
            renormalize_logits=bool(model.barred),
            return_dict_in_generate=True,
            output_scores=self._beam > 1,
        )
        model.network.generation_config = settings  # the folder's must not fill gaps
        return model.network.generate(**model.encoder_input(batch), generation_config=settings)

    def _tokens(self, ids: list[int]) -> list[str]:
        """The tokens up to the end of sentence, included if there is one."""
        eos = self._model.eos
        length = ids.index(eos) + 1 if eos in ids else len(ids)
        return [self._model.tokens[token] for token in ids[:length]]

    def _hypothesis(self, tokens: list[str], score: float) -> Hypothesis:
        ended = tokens[-1:] == ["</s>"]
        return Hypothesis(tokens[:-1] if ended else tokens, score, len(tokens), ended)
