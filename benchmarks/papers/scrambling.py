"""Variants of scrambling (W&G 2017, footnote 5)."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from paraloom.models.embeddings.ragged_columns import RaggedIds, Sentences, join_all
from paraloom.models.embeddings.tasks import paraphrases
from paraloom.models.embeddings.training.data import Pairs
from paraloom.models.embeddings.training.pair_trainer import PairTrainer
from paraloom.models.embeddings.training.scrambling import shuffled
from paraloom.models.embeddings.vocabulary import Tags, tag_edges
from paraloom.papers.options import SystemOptions


def scrambled(
    sides: Sequence[Sentences], options: SystemOptions, random: np.random.Generator
) -> list[Sentences]:
    """Scramble the words in the share `options.scramble` of the pairs, and return both sides.

    Both sides of a chosen pair are scrambled. In the variant `sentences`, each sentence is chosen
    separately.
    """
    count = len(next(iter(sides[0].values())).lengths)
    chosen = random.random(count) < options.scramble
    found: list[Sentences] = []
    for number, side in enumerate(sides):
        if options.scramble_variant == "sentences" and number:
            chosen = random.random(count) < options.scramble
        if (words := side.get("words")) is not None:
            if options.scramble_swaps is None:
                words = shuffled(words, chosen, options.tags, random)
            else:
                swaps = np.where(chosen, random.poisson(options.scramble_swaps, count), 0)
                words = _swapped(words, swaps, options.tags, random)
            side = {**side, "words": words}
        found.append(side)
    return found


def _swapped(
    column: RaggedIds, swaps: NDArray[np.int64], tags: Tags, random: np.random.Generator
) -> RaggedIds:
    first, last = tag_edges(tags)
    words = column.lengths - first - last
    swaps = np.where(words > 1, swaps, 0)
    ids = column.ids.copy()
    for number in range(int(swaps.max(initial=0))):
        rows = np.flatnonzero(swaps > number)
        one = random.integers(words[rows])
        other = (one + 1 + random.integers(words[rows] - 1)) % words[rows]
        starts = column.offsets[rows] + first
        a, b = starts + one, starts + other
        ids[a], ids[b] = ids[b], ids[a]
    return RaggedIds(ids, column.offsets)


class VariantTrainer(PairTrainer):
    """Trains on pairs with a variant of scrambling."""

    before: Sentences | None = None  # unscrambled sentences to select negatives from

    def scramble(self, sides: Sequence[Sentences], random: np.random.Generator) -> list[Sentences]:
        """Return the sides with scrambled words."""
        assert isinstance(self.options, SystemOptions)
        return scrambled(sides, self.options, random)

    def train_on(self, batch: Pairs) -> None:
        """Train on a batch. In the variant `after_negatives`, store the unscrambled sentences."""
        assert isinstance(self.options, SystemOptions)
        after = self.options.scramble_variant == "after_negatives"
        self.before = join_all(batch.sides) if after else None
        super().train_on(batch)

    def negatives(
        self,
        sentences: Sentences,
        keys: NDArray[np.uint64],
        sources: NDArray[np.uint64] | None = None,
    ) -> NDArray[np.int64]:
        """Select negatives among the unscrambled sentences if they are stored."""
        return super().negatives(self.before or sentences, keys, sources)


train = partial(paraphrases.train, trainer=VariantTrainer)
"""Train on paraphrase pairs, with variants of scrambling."""
