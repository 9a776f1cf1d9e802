"""Training on paraphrase pairs by the margin loss with hard negatives (W&G 2017, Eq. 2; ParaNMT
4.2)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paraloom.models.embeddings.encoders.base import Encoder
from paraloom.models.embeddings.model import weights
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Sentences, take_all
from paraloom.models.embeddings.training.checkpoint import TrainingFolder
from paraloom.models.embeddings.training.data import Pairs
from paraloom.models.embeddings.training.loss import margin_loss
from paraloom.models.embeddings.training.negatives import hardest_negatives, nearer_given
from paraloom.models.embeddings.training.trainer import Progress, Source, Trainer, better
from paraloom.models.embeddings.vocabulary import tag_count

_ENCODED = 2048  # sentences encoded at once when negatives are selected


class PairTrainer(Trainer[Pairs]):
    """Training on pairs in mega-batches, from which the negatives are selected.

    With `evaluate`, the score of the present weights on development data, `fit` leaves the weights
    with the best score. They are evaluated after each epoch and every `evaluate_every` steps;
    training ends after `patience` evaluations without a better one.
    """

    def __init__(
        self,
        encoder: Encoder,
        source: Source[Pairs],
        options: EmbeddingOptions,
        seed: int,
        *,
        folder: TrainingFolder | None = None,
        evaluate: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(encoder, source, options, seed, folder=folder)
        self.evaluate = evaluate
        self.best_weights: dict[str, Tensor] = {}

    def fit(self) -> Progress:
        """Train to the end; then only the encoder with its best or final weights is left."""
        progress = super().fit()
        if self.best_weights:
            self.encoder.load_state_dict(self.best_weights)
        return progress

    @property
    def finished(self) -> bool:
        """Whether all steps or epochs are done, or the last evaluations brought nothing better."""
        waited = len(self.progress.evaluations) - 1 - self.progress.chosen
        patience = self.options.patience
        return super().finished or (patience is not None and waited >= patience)

    def report(self, before: int) -> None:
        """Evaluate if it is time to, then as any trainer: a checkpoint contains the evaluation."""
        every = self.options.evaluate_every
        if every and before // every < self.progress.step // every:
            self.evaluate_weights()
        super().report(before)

    def end_epoch(self) -> None:
        """Evaluate."""
        self.evaluate_weights()

    def evaluate_weights(self) -> None:
        """Evaluate the present weights, unless that was done; keep them if they are the best."""
        progress = self.progress
        done = progress.evaluations
        if self.evaluate is None or (done and done[-1]["step"] == progress.step):
            return
        score = self.evaluate()
        epoch = progress.epoch + bool(progress.row)
        if better(score, progress.best):
            progress.best, progress.chosen = score, len(done)
            self.best_weights = {name: w.clone() for name, w in weights(self.encoder).items()}
        done.append({"epoch": epoch, "step": progress.step, "development": score})
        self.log(development=score)

    def evaluations(self) -> dict[str, Any]:
        """The score of the best evaluation, its epoch and step, and all evaluations."""
        done = self.progress.evaluations
        best = done[self.progress.chosen]
        return {
            "development": best["development"],
            "best_epoch": best["epoch"],
            "best_step": best["step"],
            "epochs": done[-1]["epoch"],
            "evaluations": done,
        }

    def tensors(self) -> dict[str, Tensor]:
        """As any trainer's, and the best weights so far."""
        best = {f"best.{name}": weight for name, weight in self.best_weights.items()}
        return {**super().tensors(), **best}

    def restore(self, progress: Progress, state: dict[str, Tensor]) -> None:
        """Resume from the `tensors` at this progress."""
        super().restore(progress, state)
        names = weights(self.encoder) if progress.evaluations else ()
        self.best_weights = {name: state[f"best.{name}"] for name in names}

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
        n = len(pairs)
        if options.scramble:
            position = [self.seed, progress.epoch, progress.pool, progress.row]
            pairs = pairs.scrambled(options, np.random.default_rng(position))
        sentences = pairs.sentences
        before = options.scramble_variant == "after_negatives"
        read = batch.sentences if before else sentences
        negatives = self.negatives(read, pairs.keys, pairs.sources)
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
        """The row of each sentence's negative, [2, n], among n left and n right sentences.

        If n hard negatives follow these, that of a pair is taken for the sides that it is nearer
        to.
        """
        n = keys.shape[1]
        self.encoder.eval()
        (lengths, *_) = (column.lengths for column in sentences.values())
        total = len(lengths)
        starts = range(0, total, _ENCODED)
        chunks = (np.arange(start, min(start + _ENCODED, total)) for start in starts)
        vectors = torch.cat([self.encode(take_all(sentences, rows)) for rows in chunks])
        self.encoder.train()
        options = self.options
        of_sides = hardest_negatives(
            *(vectors[:n], vectors[n : 2 * n], keys[0], keys[1]),
            options.negatives,
            sources,
            false_negative_margin=options.false_negative_margin,
        )
        found = torch.stack(of_sides).numpy()
        if total > 2 * n:
            there = lengths[2 * n :] > tag_count(self.options.tags)
            found = nearer_given(found, vectors, there)
        return found

    def step(self, quadruplets: Sentences) -> None:
        """One step on lefts, rights, and the negatives of both, a quarter each."""
        self.seed_noise()
        self.optimizer_step(margin_loss(self.encode(quadruplets), self.options.margin))
