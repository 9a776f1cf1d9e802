"""Mean inverse document frequency of a pair, which is high if the words are rare."""

import numpy as np

from paraloom.models.errors import UserError
from paraloom.models.scorers.base import Resource, scorer
from paraloom.models.text.tokens import PairText
from paraloom.models.text.vectors import WordVectors, load_vectors


@scorer(
    meaning="mean inverse document frequency of the tokens of both sides",
    unit="IDF",
    range=(None, None),
    resource=Resource(
        name="idf",
        open=load_vectors,
        remedy="the words' IDF: set score.idf to a file of them, or count them on the corpus",
    ),
)
def mean_idf(pairs: PairText, idf: WordVectors) -> np.ndarray:
    """Return the mean inverse document frequency of the tokens of both sides: float32 [n]. Unknown
    words have the value of the row `UUUNKKK` in `idf`. They are left out if there is no such row.
    The value is 0 if no word is left."""
    if idf.dim != 1:
        raise UserError(f"mean_idf needs a table of one number a word, this one has {idf.dim}")
    rows = idf.rows(pairs.vocabulary)
    values = idf.at(rows)[:, 0]
    counted = (rows >= 0) | (idf.unknown >= 0)
    total, count = np.zeros(len(pairs)), np.zeros(len(pairs))
    for side in (pairs.reference, pairs.translation):
        total += np.bincount(side.rows, values[side.ids], minlength=len(pairs))
        count += np.bincount(side.rows, counted[side.ids], minlength=len(pairs))
    return (total / np.maximum(count, 1)).astype(np.float32)
