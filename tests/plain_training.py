"""The published training procedure in plain PyTorch, as a baseline for timings and tests.

The code follows the trainer of Wieting et al. (2021). Sentences are padded lists of ids, and a
mega-batch is encoded mini-batch by mini-batch. The negative of each sentence is selected
separately. An `nn.Embedding` has dense gradients, and torch's Adam updates all word vectors. Unlike
in the trainer of Wieting et al., a sentence that equals either side of the pair is not a negative.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, margin_ranking_loss
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from paraloom.models.embeddings.training.data import Pairs
from paraloom.models.embeddings.training.pair_trainer import PairTrainer

Sentence = list[int]
Pair = tuple[Sentence, Sentence]


class PlainEncoder(nn.Module):
    """Encodes sentences as [n, dim], given padded ids, [n, longest], and lengths, [n]."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(vectors), vectors.shape[1], _weight=vectors.clone())

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the mean of the words' outputs."""
        outputs = self.outputs(self.embedding(ids), lengths)
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths.unsqueeze(1)
        return (outputs * mask.unsqueeze(2)).sum(1) / lengths.unsqueeze(1)

    def outputs(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Return one output per word. Here, the output is the word vector."""
        return words


class PlainLSTM(PlainEncoder):
    """LSTM Avg, or BiLSTM Avg with the states of both directions concatenated."""

    def __init__(self, vectors: Tensor, hidden: int, *, both: bool) -> None:
        super().__init__(vectors)
        self.lstm = nn.LSTM(vectors.shape[1], hidden, batch_first=True, bidirectional=both)

    def outputs(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Return the states."""
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


def plain_of(trainer: PairTrainer) -> PlainEncoder:
    """Return the plain encoder with the weights of Word Avg, LSTM Avg or BiLSTM Avg."""
    encoder: Any = trainer.encoder
    (table,) = trainer.matrices.values()
    if trainer.options.model == "word-avg":
        return PlainEncoder(table.weight)
    both = trainer.options.model == "bilstm-avg"
    plain = PlainLSTM(table.weight, trainer.options.dim, both=both).to(table.weight)
    for direction, suffix in zip(encoder.directions, ("", "_reverse"), strict=False):
        for name, weight in direction.weights.named_parameters():
            getattr(plain.lstm, name + suffix).data.copy_(weight.data)
    return plain


def plain_pairs(pairs: Pairs) -> list[Pair]:
    """Return pairs of lists of word ids."""
    sides = (side["words"] for side in pairs.sides)
    lists = ([ids.tolist() for ids in np.split(of.ids, of.offsets[1:-1])] for of in sides)
    return list(zip(*lists, strict=True))


class PlainTrainer:
    """Trains by Adam on the margin loss, with negatives from the other side of the pairs."""

    def __init__(
        self, encoder: PlainEncoder, *, margin: float, learning_rate: float, batch_size: int
    ) -> None:
        self.encoder, self.margin, self.batch_size = encoder, margin, batch_size
        self.adam = torch.optim.Adam(encoder.parameters(), lr=learning_rate)
        self.losses: list[float] = []

    def train_mega_batch(self, pairs: Sequence[Pair], instead: np.ndarray | None = None) -> None:
        """Select all negatives, then make one step per mini-batch.

        Args:
            instead: indices of negatives to train on instead of the selected negatives, [2, n]: for
                left sentences, indices of right sentences, and vice versa.
        """
        size = self.batch_size
        batches = [pairs[i : i + size] for i in range(0, len(pairs), size)]
        with torch.no_grad():
            left, right = (
                torch.cat([self.encode([pair[side] for pair in batch]) for batch in batches])
                for side in (0, 1)
            )
        rows = [self.negatives(left, right, pairs, 0), self.negatives(right, left, pairs, 1)]
        if instead is not None:
            rows = instead.tolist()
        left_negatives = [pairs[row][1] for row in rows[0]]
        right_negatives = [pairs[row][0] for row in rows[1]]
        for start, batch in zip(range(0, len(pairs), size), batches, strict=True):
            here = slice(start, start + size)
            self.step(batch, left_negatives[here], right_negatives[here])

    def negatives(
        self, anchors: Tensor, others: Tensor, pairs: Sequence[Pair], side: int
    ) -> list[int]:
        """Return, for each sentence, the index of the nearest sentence on the other side.

        Sentences that equal either side of the pair are excluded.
        """
        places: dict[tuple[int, ...], list[int]] = {}
        for i, pair in enumerate(pairs):
            places.setdefault(tuple(pair[1 - side]), []).append(i)
        found = []
        for i, pair in enumerate(pairs):
            scores = cosine_similarity(anchors[i : i + 1], others)
            for sentence in pair:
                scores[places.get(tuple(sentence), [])] = -2
            found.append(int(scores.argmax()))
        return found

    def step(
        self, batch: Sequence[Pair], left_negatives: list[Sentence], right_negatives: list[Sentence]
    ) -> None:
        """Update the encoder on one mini-batch."""
        left, right = (self.encode([pair[side] for pair in batch]) for side in (0, 1))
        positive = cosine_similarity(left, right)
        loss = torch.zeros((), device=positive.device)
        for anchor, negatives in ((left, left_negatives), (right, right_negatives)):
            against = cosine_similarity(anchor, self.encode(negatives))
            ones = torch.ones(len(batch), device=positive.device)
            loss = loss + margin_ranking_loss(positive, against, ones, margin=self.margin)
        self.adam.zero_grad()
        torch.autograd.backward(loss)
        self.adam.step()
        self.losses.append(loss.item())

    def encode(self, sentences: Sequence[Sentence]) -> Tensor:
        """Pad and encode sentences."""
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        ids = torch.zeros(len(sentences), int(lengths.max()), dtype=torch.int64)
        for row, sentence in enumerate(sentences):
            ids[row, : len(sentence)] = torch.tensor(sentence)
        device = self.encoder.embedding.weight.device
        encoded: Tensor = self.encoder(ids.to(device), lengths.to(device))
        return encoded
