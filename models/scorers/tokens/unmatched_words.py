"""Content words of one side that have no similar word on the other side."""

import numpy as np

from paraloom.models.embeddings.comparison import unit
from paraloom.models.embeddings.ragged_columns import ranges
from paraloom.models.scorers.base import scorer
from paraloom.models.scorers.learned.paragram_similarity import PARAGRAM
from paraloom.models.scorers.tokens.content_overlap import content_ids
from paraloom.models.text.tokens import PairText, TokenIds
from paraloom.models.text.vectors import WordVectors

_PRODUCTS = 1 << 16  # cosines per block


@scorer(
    meaning="content words that the other side lacks; a word counts as 1 minus its highest cosine "
    "with a content word of the other side",
    unit="words",
    range=(0.0, None),
    higher_is_better=False,
    resource=PARAGRAM,
)
def unmatched_words(pairs: PairText, paragram: WordVectors) -> np.ndarray:
    """Return the weighted number of content words without a counterpart: float32 [n], at least 0.

    A content word whose stem is missing on the other side counts as 1 − c. Here c is the highest
    cosine with a content word of the other side, or 0 if this cosine is negative or a vector is
    missing. Use this scorer to find words that a translation added, dropped or replaced.
    """
    stems = content_ids(pairs)
    rows = paragram.rows(pairs.vocabulary)
    vectors = unit(paragram.at(rows).astype(np.float32))
    vectors[rows < 0] = 0.0
    total = np.zeros(len(pairs))
    sides = [_content(side, stems) for side in (pairs.reference, pairs.translation)]
    for (row, words), (other_row, others) in (sides, sides[::-1]):
        width = int(stems.max(initial=0)) + 1
        alone = ~np.isin(row * width + stems[words], other_row * width + stems[others])
        row, words = row[alone], words[alone]
        first, last = (np.searchsorted(other_row, row, side) for side in ("left", "right"))
        total += np.bincount(row, 1 - _best(vectors, words, others, first, last), len(pairs))
    return total.astype(np.float32)


def _content(side: TokenIds, stems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    content = stems[side.ids] >= 0
    return side.rows[content].astype(np.int64), side.ids[content].astype(np.int64)


def _best(
    vectors: np.ndarray, words: np.ndarray, others: np.ndarray, first: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Return each word's highest cosine with `others[first:last]`, from 0 to 1: float32 [m]."""
    best = np.zeros(len(words), np.float32)
    block = max(1, _PRODUCTS // max(1, int((last - first).max(initial=1))))
    for at in range(0, len(words), block):
        counts = (last - first)[at : at + block]
        word = np.repeat(np.arange(at, at + len(counts)), counts)
        other = others[ranges(first[at : at + block], counts)]
        cosines = np.einsum("nd,nd->n", vectors[words[word]], vectors[other])
        np.maximum.at(best, word, cosines)
    return best.clip(0.0, 1.0)
