"""Choice among several translations of a source, which are in neighbouring rows."""

import numpy as np
import pyarrow as pa

from paraloom.models.languages import ENGLISH
from paraloom.models.scorers import PairScorer


def best_candidates(table: pa.Table) -> np.ndarray:
    """Mark the first row of each source, bool [n]: candidates are ordered, the best first."""
    best = np.ones(table.num_rows, bool)
    best[1:] = _sources(table)[1:] != _sources(table)[:-1]
    return best


def best_first(table: pa.Table, score: str) -> np.ndarray:
    """Order of rows, int64 [n], that sorts each source's candidates by falling score."""
    return np.lexsort((-table[score].to_numpy(), _sources(table)))


def diverse_candidates(table: pa.Table, max_overlap: float, language: str = ENGLISH) -> np.ndarray:
    """Mark translations of each source that differ from each other, bool [n].

    The best one is kept. Then the candidate whose largest overlap with the kept ones is smallest is
    added, while that is at most `max_overlap`; ties go to the earlier candidate. The overlap is
    `trigram_overlap` (`paraloom.models.scorers.tokens`), or the F1 of tokens if a side has no
    trigram.
    """
    sources = _sources(table)
    place = np.arange(len(sources)) - np.flatnonzero(best_candidates(table))[sources]
    width = int(place.max(initial=0)) + 1
    nearest = np.full((int(sources.max(initial=-1)) + 1, width), np.inf)  # to the kept ones
    nearest[sources, place] = -1.0
    overlap = _overlaps(table, sources, place, width, language)
    kept = np.zeros(nearest.shape, bool)
    every = np.arange(len(nearest))
    for _ in range(width):
        least = nearest.argmin(axis=1)
        takes = nearest[every, least] <= max_overlap
        kept[every[takes], least[takes]] = True
        np.maximum(nearest, overlap[every, least], out=nearest)
        nearest[every, least] = np.inf
    return np.asarray(kept[sources, place])


def _sources(table: pa.Table) -> np.ndarray:
    """Number of each row's source, int64 [n], from 0; rows of a source are neighbours."""
    ids = table["id"].combine_chunks().dictionary_encode().indices.to_numpy()
    return np.cumsum(np.diff(ids, prepend=ids[:1]) != 0)


def _overlaps(
    table: pa.Table, sources: np.ndarray, place: np.ndarray, width: int, language: str
) -> np.ndarray:
    """Overlaps between all candidates of a source: float64 [sources, width, width]."""
    found = np.zeros((int(sources.max(initial=-1)) + 1, width, width))
    texts = table["translation"].combine_chunks()
    scorer = PairScorer(["trigram_overlap", "unigram_f1"], language=language)
    for distance in range(1, width):
        first = np.flatnonzero(sources[distance:] == sources[:-distance])
        second = first + distance
        scores = scorer.score(texts.take(pa.array(first)), texts.take(pa.array(second)))
        short = np.minimum(scores["reference_tokens"], scores["translation_tokens"]) < 3
        values = np.where(short, scores["unigram_f1"], scores["trigram_overlap"])
        found[sources[first], place[first], place[second]] = values
        found[sources[first], place[second], place[first]] = values
    return found
