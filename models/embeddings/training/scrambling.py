"""Words in random order (W&G 2017, 4.2), and the variants of footnote 5."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import RaggedIds, Sentences, positions
from paraloom.models.embeddings.vocabulary import tag_edges


def scrambled(
    sides: Sequence[Sentences], options: EmbeddingOptions, random: np.random.Generator
) -> list[Sentences]:
    """The sides of n pairs, with the words of the share `options.scramble` of them in random order.

    All sides of a pair are scrambled, or none, unless the variant is `sentences`. With
    `scramble_swaps`, λ, a sentence has n swaps of two words, n from a Poisson distribution.
    Tags keep their positions. Trigrams are unchanged: their mean does not depend on the order.
    """
    count = len(next(iter(sides[0].values())).lengths)
    chosen = random.random(count) < options.scramble
    found: list[Sentences] = []
    for number, side in enumerate(sides):
        if options.scramble_variant == "sentences" and number:
            chosen = random.random(count) < options.scramble
        words = side.get("words")
        if words is None:
            found.append(side)
            continue
        movable = _movable(words, options)
        if options.scramble_swaps is None:
            words = _shuffled(words, chosen, movable, random)
        else:
            swaps = np.where(chosen, random.poisson(options.scramble_swaps, count), 0)
            words = _swapped(words, swaps, movable, random)
        found.append({**side, "words": words})
    return found


def _movable(column: RaggedIds, options: EmbeddingOptions) -> tuple[int, NDArray[np.int64]]:
    """The position of a sentence's first word, after a tag, and the number of its words, [n]."""
    start, end = tag_edges(options.tags)
    return int(start), column.lengths - start - end


def _shuffled(
    column: RaggedIds,
    chosen: NDArray[np.bool_],
    movable: tuple[int, NDArray[np.int64]],
    random: np.random.Generator,
) -> RaggedIds:
    """The column with the words of the chosen sentences in random order."""
    first, words = movable
    row = np.repeat(np.arange(len(chosen)), column.lengths)
    length, position = column.lengths[row], positions(column.offsets)
    moves = chosen[row] & (position >= first) & (position < first + words[row])
    anywhere = (first + random.random(len(row)) * words[row]) / length
    order = np.argsort(row + np.where(moves, anywhere, (position + 0.5) / length), kind="stable")
    return RaggedIds(column.ids[order], column.offsets)


def _swapped(
    column: RaggedIds,
    swaps: NDArray[np.int64],
    movable: tuple[int, NDArray[np.int64]],
    random: np.random.Generator,
) -> RaggedIds:
    """The column after so many swaps of two different words in each sentence."""
    first, words = movable
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
