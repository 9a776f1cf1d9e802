"""An encoder with decoders of the neighbouring sentences (Zhelezniak et al. 2018).

Decoders predict the sentences before and after a sentence from its vector h. Two sentences with
similar neighbours have a large dot product of their vectors h (BOW decoders) or of the states of
their decoders (GRU decoders).
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from paraloom.models.embeddings.encoders.base import Encoder, TokenEncoder
from paraloom.models.embeddings.encoders.ragged_batches import RaggedBatch, weighted_sums
from paraloom.models.embeddings.ragged_columns import RaggedIds, Sentences, join
from paraloom.papers.datasets.contiguous_text import edges, truncated
from paraloom.papers.encoders.gru import NormalisedGRU

Vector = Literal["encoder", "concat", "mean"]
INITIAL_RANGE = 0.1  # initial weights are uniform in ±0.1 (section 4)


class SentencesInContext(NamedTuple):
    """n sentences with tags, and the n sentences before and after them."""

    own: RaggedIds
    before: RaggedIds
    after: RaggedIds


class Sum(TokenEncoder):
    """The sum of the word vectors, [n, dim]: BOW."""

    reads_order = False

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Return the vectors of n sentences, [n, dim]."""
        return weighted_sums(batch, np.ones(len(batch.rows)))


class Context(Encoder):
    """An encoder with two decoders. `vector` and `steps` may be changed after training.

    Args:
        decoder: `gru` (two normalised GRUs with the initial state h) or `bow`.
        outputs: number of words that the decoders can predict (the first words of the vocabulary).
        vector: the sentence vector. `encoder` is h. `concat` and `mean` are the states of both GRUs
            over `steps` words, concatenated or averaged.
        max_words: number of words to which sentences are truncated.
    """

    outputs: int

    def __init__(
        self,
        encoder: TokenEncoder,
        *,
        decoder: Literal["gru", "bow"],
        outputs: int,
        vector: Vector,
        steps: int,
        max_words: int,
    ) -> None:
        super().__init__()
        self.encoder, self.outputs, self.max_words = encoder, outputs, max_words
        self.vector, self.steps, self.reads_order = vector, steps, encoder.reads_order
        words, hidden = encoder.input.dim, encoder.dim
        self.to_words = nn.Linear(hidden, outputs)
        grus = [NormalisedGRU(words, hidden) for _ in range(2 if decoder == "gru" else 0)]
        self.decoders = nn.ModuleList(grus)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.uniform_(parameter, -INITIAL_RANGE, INITIAL_RANGE)
            elif "bias" in name:  # all other vectors are gains and stay 1
                nn.init.zeros_(parameter)

    @property
    def dim(self) -> int:  # type: ignore[override]  # it depends on `vector` and `steps`
        """Number of dimensions of a sentence vector."""
        copies = 2 * self.steps if self.vector == "concat" else 1
        return copies * self.encoder.dim

    def forward(self, sentences: Sentences) -> Tensor:
        """Encode n sentences, [n, dim]."""
        words = truncated(sentences["words"], self.max_words, tags=2)
        codes = self.encode(self.encoder.input(words))
        if self.vector == "encoder":
            return codes
        states = torch.cat(self.unroll(codes, self.steps), dim=1)  # [n, 2 * steps, hidden]
        return states.flatten(1) if self.vector == "concat" else states.mean(dim=1)

    def encode(self, batch: RaggedBatch) -> Tensor:
        """Return h for n sentences with tags, [n, hidden]."""
        return self.encoder.encode(_trimmed(batch, head=True))

    @torch.no_grad()
    def unroll(self, codes: Tensor, steps: int) -> list[Tensor]:
        """Return the states of each decoder, [n, steps, hidden].

        A decoder reads the mean of word vectors, weighted by the probabilities that it predicted.
        """
        matrix = self.encoder.input.table
        vectors = matrix.current() if matrix.trained else matrix.weight
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

    def loss(self, batch: SentencesInContext) -> Tensor:
        """Return the mean of −ln p over the words and end tags of both neighbours: a scalar."""
        n = len(batch.own.offsets) - 1
        # Look up all sentences at once, so that each word vector has only one gradient.
        looked_up = self.encoder.input(join(batch))
        own, *neighbours = (_sentences(looked_up, i * n, (i + 1) * n) for i in range(3))
        codes = self.encode(own)
        targets = [column.ids[~edges(column.offsets, tail=False)] for column in batch[1:]]
        if not self.decoders:
            chances = torch.log_softmax(self.to_words(codes), dim=1)
            rows = [np.repeat(np.arange(n), column.lengths - 1) for column in batch[1:]]
            entries = np.concatenate(rows) * self.to_words.out_features + np.concatenate(targets)
            index = torch.from_numpy(entries).to(codes.device)
            return -chances.flatten().index_select(0, index).mean()
        total, count = codes.new_zeros(()), 0
        for decoder, read, words in zip(self.decoders, neighbours, targets, strict=True):
            states, trie = decoder(_trimmed(read, tail=True), codes)
            goal = np.empty(len(trie.rows), np.int64)
            goal[trie.paths] = words
            logits = self.to_words(states)
            total = total + nn.functional.cross_entropy(
                logits, torch.from_numpy(goal).to(logits.device), reduction="sum"
            )
            count += len(goal)
        return total / count


def _sentences(batch: RaggedBatch, start: int, end: int) -> RaggedBatch:
    offsets = batch.offsets[start : end + 1]
    rows = batch.rows[offsets[0] : offsets[-1]]
    return batch._replace(rows=rows, offsets=offsets - offsets[0])


def _trimmed(batch: RaggedBatch, *, head: bool = False, tail: bool = False) -> RaggedBatch:
    rows = batch.rows[~edges(batch.offsets, head=head, tail=tail)]
    offsets = batch.offsets - (head + tail) * np.arange(len(batch.offsets))
    return batch._replace(rows=rows, offsets=offsets)
