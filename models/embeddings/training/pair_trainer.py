"""Training on pairs with the margin loss (W&G 2017, Eq. 2) and mega-batches (ParaNMT 4.2)."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from paraloom.models.embeddings.ragged_columns import Sentences, join_all, take_all
from paraloom.models.embeddings.training.data import Pairs
from paraloom.models.embeddings.training.loss import margin_loss
from paraloom.models.embeddings.training.negatives import hardest_negatives, nearer_given
from paraloom.models.embeddings.training.scrambling import scrambled
from paraloom.models.embeddings.training.trainer import Trainer
from paraloom.models.embeddings.vocabulary import tag_count

_ENCODED = 2048  # sentences encoded at once for the selection of negatives


class PairTrainer(Trainer[Pairs]):
    """Trains on pairs in mega-batches, from which negatives are selected."""

    @property
    def batch_rows(self) -> int:
        """Number of pairs in a mega-batch."""
        return self.options.mega_batch * self.options.batch_size

    def train_on(self, batch: Pairs) -> None:
        """Select negatives with the present weights, then make a step for each mini-batch."""
        options, progress, n, sides = self.options, self.progress, len(batch), batch.sides
        if options.scramble:
            position = [self.seed, progress.epoch, progress.pool, progress.row]
            sides = self.scramble(sides, np.random.default_rng(position))
        sentences = join_all(sides)
        negatives = self.negatives(sentences, batch.keys, batch.sources)
        for start in range(0, n, options.batch_size):
            rows = np.arange(start, min(start + options.batch_size, n))
            rows = rows[(negatives[:, rows] >= 0).all(axis=0)]
            if len(rows):
                quadruplets = np.concatenate([rows, rows + n, *negatives[:, rows]])
                self.step(take_all(sentences, quadruplets))

    def scramble(self, sides: Sequence[Sentences], random: np.random.Generator) -> list[Sentences]:
        """Shuffle the words in a share of the pairs, `options.scramble`."""
        return scrambled(sides, self.options.scramble, self.options.tags, random)

    @torch.no_grad()
    def negatives(
        self,
        sentences: Sentences,
        keys: NDArray[np.uint64],
        sources: NDArray[np.uint64] | None = None,
    ) -> NDArray[np.int64]:
        """Return the index of each sentence's negative in `sentences`, [2, n]; -1 if there is none.

        Args:
            sentences: n left sentences, n right sentences, and optionally the user's n negatives.
                A user's negative replaces a selected negative that is less similar to the sentence.
            keys, sources: see `Pairs`.
        """
        n = keys.shape[1]
        self.encoder.eval()
        (lengths, *_) = (column.lengths for column in sentences.values())
        total = len(lengths)
        batches = np.split(np.arange(total), range(_ENCODED, total, _ENCODED))
        vectors = torch.cat([self.encode(take_all(sentences, rows)) for rows in batches])
        self.encoder.train()
        sides = vectors[:n], vectors[n : 2 * n], keys[0], keys[1]
        nearest = hardest_negatives(*sides, self.options.negatives, sources)
        found = torch.stack(nearest).numpy()
        if total > 2 * n:
            there = lengths[2 * n :] > tag_count(self.options.tags)
            found = nearer_given(found, vectors, there)
        return found

    def step(self, quadruplets: Sentences) -> None:
        """Make a step on n left sentences, n right sentences, and the negatives of both."""
        self.seed_noise()
        self.optimizer_step(margin_loss(self.encode(quadruplets), self.options.margin))
