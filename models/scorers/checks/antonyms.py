"""Check whether a content word was replaced by its antonym."""

import re
from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from paraloom.models.embeddings.ragged_columns import ranges
from paraloom.models.scorers.base import Resource, check
from paraloom.models.scorers.checks.negation import NEGATION
from paraloom.models.scorers.tokens.content_overlap import content_stem
from paraloom.models.text.tokens import PairText
from paraloom.models.text.wordnet import open_antonyms


@check(
    "no content word is replaced by its antonym",
    "a word is replaced by its antonym",
    resource=Resource(
        name="wordnet",
        open=open_antonyms,
        remedy="WordNet: set score.wordnet to /usr/share/wordnet",
    ),
)
def no_antonyms(pairs: PairText, wordnet: Mapping[str, Collection[str]]) -> np.ndarray:
    """Return 0 if a content word has its antonym on the other side, else 1: float32 [n].

    A word is compared only if its stem does not occur on the other side. `wordnet` maps a word to
    its antonyms. Antonyms of negations, such as "ever" for "never", do not count, because "not
    ever" means "never".
    """
    stems = [content_stem(word, pairs.language) for word in pairs.vocabulary.to_pylist()]
    encoded = pa.array(stems, pa.string()).dictionary_encode()
    ids = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)  # -1: no content word
    number = {stem: i for i, stem in enumerate(encoded.dictionary.to_pylist())}
    kept = {word: others for word, others in wordnet.items() if not re.match(NEGATION, word)}
    related = ((word, other) for word in kept for other in kept[word] if other in kept)
    stemmed = ([content_stem(word, pairs.language) for word in words] for words in related)
    known = sorted((number[a], number[b]) for a, b in stemmed if {a, b} <= number.keys() and a != b)
    opposite = np.array(known, np.int64).reshape(-1, 2)
    sides = (pairs.reference, pairs.translation)
    first, second = (side.rows.astype(np.int64) << 32 | ids[side.ids] for side in sides)
    only, others = np.setdiff1d(first, second), np.setdiff1d(second, first)  # row << 32 | stem
    words = only & 0xFFFFFFFF
    starts, ends = (np.searchsorted(opposite[:, 0], words, side) for side in ("left", "right"))
    counts = ends - starts
    wanted = np.repeat(only >> 32, counts) << 32 | opposite[ranges(starts, counts), 1]
    passes = np.ones(len(pairs), np.float32)
    passes[wanted[np.isin(wanted, others)] >> 32] = 0
    return passes
