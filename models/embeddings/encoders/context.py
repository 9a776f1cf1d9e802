"""Encoder and decoders of a sentence's neighbours (Zhelezniak et al. 2018).

An encoder's vector h of a sentence is trained to let decoders predict the sentence before and the
one behind. Where a decoder is log-linear (BOW), sentences with like neighbours have a large dot
product of h. Where it is a GRU, that is so of the states that the decoder goes through, as its
outputs are log-linear in these: the optimal space is theirs, and is reached without training by
unrolling the decoders.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from models.embeddings.encoders.average import Average
from models.embeddings.encoders.gru import NormalisedGRU
from models.embeddings.encoders.ragged_batches import Tokens
from models.embeddings.encoders.recurrent import Recurrent
from models.embeddings.ragged_columns import Sentences, join
from models.embeddings.vocabulary import FlatIds

Vector = Literal["encoder", "concat", "mean"]


class Neighbours(NamedTuple):
    """n sentences with tags, and those before and behind them."""

    own: FlatIds
    before: FlatIds
    behind: FlatIds


class Context(nn.Module):
    """An encoder with decoders; `vector` and `steps` may be changed after training.

    All three look words up in the encoder's table; both decoders share their output weights. The
    begin tag is what a decoder reads before the first word, the end tag is what it ends with; the
    encoder reads the words and the end tag.

    Args:
        encoder: of the words.
        decoder: `gru`, a normalised one for each neighbour, which starts from h; or `bow`.
        outputs: the first so many words of the vocabulary can be predicted.
        vector: what a sentence is embedded as: h; or the states of both GRUs over `steps` words,
            side by side (`concat`) or averaged (`mean`).
        steps: for how many words the decoders are unrolled.
    """

    def __init__(
        self,
        encoder: Average | Recurrent,
        *,
        decoder: Literal["gru", "bow"],
        outputs: int,
        vector: Vector = "encoder",
        steps: int = 5,
    ) -> None:
        super().__init__()
        self.encoder, self.outputs = encoder, outputs
        self.vector, self.steps = vector, steps
        words, hidden = encoder.input.dim, encoder.dim
        self.to_words = nn.Linear(hidden, outputs)
        grus = [NormalisedGRU(words, hidden) for _ in range(2 if decoder == "gru" else 0)]
        self.decoders = nn.ModuleList(grus)
        nn.init.uniform_(self.to_words.weight, -0.1, 0.1)
        nn.init.zeros_(self.to_words.bias)

    @property
    def dim(self) -> int:
        """Length of a sentence's vector."""
        copies = 2 * self.steps if self.vector == "concat" else 1
        return copies * self.encoder.dim

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        codes = self.encode(self.encoder.input(sentences["words"]))
        if self.vector == "encoder":
            return codes
        states = torch.cat(self.unroll(codes, self.steps), dim=1)  # [n, 2 * steps, hidden]
        return states.flatten(1) if self.vector == "concat" else states.mean(dim=1)

    def encode(self, tokens: Tokens) -> Tensor:
        """h of n sentences with tags, [n, hidden]."""
        return self.encoder.encode(trim(tokens, head=1))

    @torch.no_grad()
    def unroll(self, codes: Tensor, steps: int) -> list[Tensor]:
        """The states of either decoder, [n, steps, hidden].

        After the begin tag it reads the mean of all word vectors, weighted by what it predicts.
        """
        table = self.encoder.input.table
        vectors = table.current() if table.trained else table.weight
        predictable = vectors[: self.outputs]
        found = []
        for decoder in self.decoders:
            assert isinstance(decoder, NormalisedGRU)
            state, states = codes, []
            inputs = vectors[1].expand(len(codes), -1)  # the begin tag
            for _ in range(steps):
                state = decoder.step(inputs, state)
                states.append(state)
                inputs = torch.softmax(self.to_words(state), dim=1) @ predictable
            found.append(torch.stack(states, dim=1))
        return found

    def loss(self, batch: Neighbours) -> Tensor:
        """-ln p of the neighbours' words given the sentences, the mean over words and end tags."""
        n = len(batch.own.offsets) - 1
        # One lookup, so that every word's row has one gradient.
        tokens = self.encoder.input(join(batch))
        own, before, behind = (part(tokens, i * n, (i + 1) * n) for i in range(3))
        codes = self.encode(own)
        if not self.decoders:
            return self._loss_of_bags(codes, (batch.before, batch.behind))
        total, count = codes.new_zeros(()), 0
        for decoder, read, words in zip(
            self.decoders, (before, behind), (batch.before, batch.behind), strict=True
        ):
            states, tree = decoder(trim(read, tail=1), codes)
            ids, offsets = words
            targets = np.empty(len(tree.words), np.int64)
            targets[tree.paths] = np.delete(ids, offsets[:-1])
            logits = self.to_words(states)
            goal = torch.from_numpy(targets).to(logits.device)
            total = total + nn.functional.cross_entropy(logits, goal, reduction="sum")
            count += len(targets)
        return total / count

    def _loss_of_bags(self, codes: Tensor, neighbours: tuple[FlatIds, FlatIds]) -> Tensor:
        chances = torch.log_softmax(self.to_words(codes), dim=1)
        places = []
        for words, offsets in neighbours:
            rows = np.repeat(np.arange(len(codes)), np.diff(offsets) - 1)
            places.append(rows * self.outputs + np.delete(words, offsets[:-1]))
        said = torch.from_numpy(np.concatenate(places)).to(codes.device)
        return -chances.flatten().index_select(0, said).mean()


def part(tokens: Tokens, start: int, end: int) -> Tokens:
    """The sentences `start:end`."""
    offsets = tokens.offsets[start : end + 1]
    return Tokens(tokens.vectors, tokens.places[offsets[0] : offsets[-1]], offsets - offsets[0])


def trim(tokens: Tokens, *, head: int = 0, tail: int = 0) -> Tokens:
    """Without the first `head` and the last `tail` tokens of every sentence (0 or 1 each)."""
    keep = np.ones(len(tokens.places), bool)
    if head:
        keep[tokens.offsets[:-1]] = False
    if tail:
        keep[tokens.offsets[1:] - 1] = False
    offsets = tokens.offsets - (head + tail) * np.arange(len(tokens.offsets))
    return Tokens(tokens.vectors, tokens.places[keep], offsets)
