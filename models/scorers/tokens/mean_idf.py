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
        remedy="the IDF of words: set score.idf to a file, or to null to count words in references",
    ),
)
def mean_idf(pairs: PairText, idf: WordVectors) -> np.ndarray:
    """Return the mean inverse document frequency of the tokens of both sides: float32 [n]. Unknown
    words have the IDF in the row `UUUNKKK` of `idf`, and are left out if this row is missing. The
    value is 0 if no word is left."""
    if idf.dim != 1:
        raise UserError(f"mean_idf needs one number per word, but the table has {idf.dim}")
    rows = idf.rows(pairs.vocabulary)
    values = idf.at(rows)[:, 0]
    counted = (rows >= 0) | (idf.unknown >= 0)
    total, count = np.zeros(len(pairs)), np.zeros(len(pairs))
    for side in (pairs.reference, pairs.translation):
        total += np.bincount(side.rows, values[side.ids], minlength=len(pairs))
        count += np.bincount(side.rows, counted[side.ids], minlength=len(pairs))
    return (total / np.maximum(count, 1)).astype(np.float32)
