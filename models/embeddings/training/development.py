"""Development data: scores by which a training keeps its best weights."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paraloom.models.embeddings.applications.evaluation import agreement, embed_pairs
from paraloom.models.embeddings.comparison import Vectors, unit
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_ranking
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.training.data import PairSource
from paraloom.models.errors import UserError

_BLOCK = 1000  # sentences compared with all others at once


class Development(NamedTuple):
    """Development data and how encoders are scored on them."""

    name: str  # what they are, for people
    score: Callable[[SentenceEncoder], float]  # higher is better


def read_development(options: EmbeddingOptions, source: PairSource) -> Development | None:
    """The data that `embeddings.development` names, or pairs that `source` holds out."""
    if isinstance(options.development, float):
        first, second = source.held_out()
        if len(first) < 2:
            raise UserError(
                f"embeddings.development: {options.development:g} of {source.rows:,} pairs holds "
                f"out {len(first)} usable pairs, 2 are needed; increase it"
            )
        score = partial(mean_reciprocal_rank, first=first, second=second)
        return Development(f"{len(first):,} held-out pairs, mean reciprocal rank × 100", score)
    if not options.development:
        return None
    sets = read_ranking(options.development_files, "embeddings.development")
    pairs = sum(map(len, sets))
    name = f"{pairs:,} labelled pairs of {len(sets)} data sets, mean Pearson × 100"
    return Development(name, partial(mean_agreement, sets=sets))


def mean_agreement(model: SentenceEncoder, sets: list[LabelledPairs]) -> float:
    """Mean Pearson × 100 over labelled data sets; 0 for one with equal predictions."""
    found = [agreement(model.embed, data, model.compare).pearson for data in sets]
    return float(np.mean(np.nan_to_num(found)))


def mean_reciprocal_rank(
    model: SentenceEncoder, first: pa.StringArray, second: pa.StringArray
) -> float:
    """100 times the mean of 1 / rank over n pairs: the rank, by cosine to the first sentence, of
    the second sentence of the pair among all second sentences."""
    return reciprocal_rank(*embed_pairs(model.embed, first, second))


def reciprocal_rank(first: Vectors, second: Vectors) -> float:
    """100 times the mean reciprocal rank of second[i] among `second`, by cosine to first[i].

    >>> reciprocal_rank(np.eye(2), np.array([[1.0, 0.0], [1.0, 0.1]]))
    100.0
    """
    first, second = unit(first), unit(second)
    found = []
    for start in range(0, len(first), _BLOCK):
        cosines = first[start : start + _BLOCK] @ second.T
        rows = np.arange(len(cosines))
        own = cosines[rows, rows + start]
        found.append(1 / (1 + (cosines > own[:, None]).sum(axis=1)))
    return float(100 * np.mean(np.concatenate(found)))
