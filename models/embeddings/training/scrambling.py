"""Scrambling: training on shuffled words (W&G 2017, 4.2)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paraloom.models.embeddings.ragged_columns import RaggedIds, Sentences, positions
from paraloom.models.embeddings.vocabulary import Tags, tag_edges


def scrambled(
    sides: Sequence[Sentences], share: float, tags: Tags, random: np.random.Generator
) -> list[Sentences]:
    """Draw a share of the pairs, and shuffle the words in all sentences of each drawn pair.

    Tags at the ends of a sentence stay there. Trigrams are not shuffled, because encoders use only
    the mean of their vectors, which does not depend on the order.
    """
    count = len(next(iter(sides[0].values())).lengths)
    chosen = random.random(count) < share
    found = []
    for side in sides:
        if "words" in side:
            side = {**side, "words": shuffled(side["words"], chosen, tags, random)}
        found.append(side)
    return found


def shuffled(
    column: RaggedIds, chosen: NDArray[np.bool_], tags: Tags, random: np.random.Generator
) -> RaggedIds:
    """Shuffle the words of the chosen sentences. Tags are not moved."""
    first, last = tag_edges(tags)
    words = column.lengths - first - last
    row = np.repeat(np.arange(len(chosen)), column.lengths)
    length, position = column.lengths[row], positions(column.offsets)
    moves = chosen[row] & (position >= first) & (position < first + words[row])
    anywhere = (first + random.random(len(row)) * words[row]) / length
    order = np.argsort(row + np.where(moves, anywhere, (position + 0.5) / length), kind="stable")
    return RaggedIds(column.ids[order], column.offsets)
