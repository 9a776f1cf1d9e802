"""Training on paraphrase pairs by the margin loss with hard negatives (W&G 2017, Eq. 2; ParaNMT
4.2)."""

import numpy as np
import torch
from numpy.typing import NDArray

from models.embeddings.ragged_columns import Sentences, join_all, take_all
from models.embeddings.training.data import Pairs
from models.embeddings.training.loss import margin_loss
from models.embeddings.training.negatives import hardest_negatives
from models.embeddings.training.trainer import Trainer

_ENCODED = 2048  # sentences encoded at once when negatives are selected


class PairTrainer(Trainer[Pairs]):
    """Training on pairs in mega-batches, from which the negatives are selected."""

    @property
    def batch_rows(self) -> int:
        """Pairs of a mega-batch: M mini-batches at the present step."""
        M, growth = self.options.mega_batch, self.options.mega_batch_growth
        if growth is not None:
            M = min(M, 1 + self.progress.step // growth)
        if self.options.steps is not None:
            M = min(M, self.options.steps - self.progress.step)
        return M * self.options.batch_size

    def train_on(self, batch: Pairs) -> None:
        """Select the negatives of a mega-batch with the present weights; then one step for each
        mini-batch."""
        options, progress, pairs = self.options, self.progress, batch
        if options.scramble:
            position = [self.seed, progress.epoch, progress.pool, progress.row]
            random = np.random.default_rng(position)
            pairs = pairs.scrambled(options.scramble, random, tags=options.tags)
        n = len(pairs)
        sentences = join_all([pairs.left, pairs.right])
        negatives = self.negatives(sentences, pairs.keys, pairs.sources)
        for start in range(0, n, options.batch_size):
            rows = np.arange(start, min(start + options.batch_size, n))
            rows = rows[(negatives[:, rows] >= 0).all(axis=0)]
            if len(rows):
                quadruplets = np.concatenate([rows, rows + n, *negatives[:, rows]])
                self.step(take_all(sentences, quadruplets))

    @torch.no_grad()
    def negatives(
        self,
        sentences: Sentences,
        keys: NDArray[np.uint64],
        sources: NDArray[np.uint64] | None = None,
    ) -> NDArray[np.int64]:
        """The row of each sentence's negative among n left and n right sentences, [2, n]."""
        n = keys.shape[1]
        self.encoder.eval()
        starts = range(0, 2 * n, _ENCODED)
        chunks = (np.arange(start, min(start + _ENCODED, 2 * n)) for start in starts)
        vectors = torch.cat([self.encode(take_all(sentences, rows)) for rows in chunks])
        self.encoder.train()
        sides = vectors[:n], vectors[n:], keys[0], keys[1]
        return torch.stack(hardest_negatives(*sides, self.options.negatives, sources)).numpy()

    def step(self, quadruplets: Sentences) -> None:
        """One step on lefts, rights, and the negatives of both, a quarter each."""
        self.seed_noise()
        self.optimizer_step(margin_loss(self.encode(quadruplets), self.options.margin))
