"""Find evaluation sentences in a corpus.

An evaluation sentence is found in a text by any of three rules:

- `equal`: the sentence and the text are equal after `normalised`.
- `n-grams`: the longer of the two contains at least 70% of the word 5-grams of the shorter. Brown
  et al. (2020, appendix C) set n to the 5th percentile of the lengths of evaluation sentences. For
  STS and SICK, this gives n = 5. Chowdhery et al. (2022, section 8) use 70%.
- `similarity`: the cosine of the two, according to a sentence encoder, exceeds a threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import matmul
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.beam_jobs.engine.shards import ROW_NUMBER
from paraloom.beam_jobs.storage.remote import localise
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.models.hashing import splitmix64, text_hashes
from paraloom.models.scorers.learned.sentence_similarity import encode, open_sentence_model
from paraloom.models.text.tokens import UNSPACED_SCRIPTS

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sentence_transformers import SentenceTransformer

RULES = ("equal", "n-grams", "similarity")
"""The rules, in the order in which they are applied."""

WORDS = 5  # words per n-gram
SHARE = 0.7  # minimum share of the n-grams of the shorter text

SENTENCES, VECTORS = "sentences.parquet", "vectors.npy"  # files of the stage `exclude`

_MOST = 1 << 24  # pairs of a text and a sentence to compare at once
_UNSPACED = 0xE0  # minimum first UTF-8 byte of letters in scripts without spaces


class EvaluationSentences:
    """An index of m evaluation sentences.

    Args:
        table: `data_set`, `row` (number of the row in the file) and `text` of each sentence.
        similar: an encoder, the unit vectors of the sentences (float32 [m, dim]), and the cosine
            that similar texts exceed. None: do not use the rule `similarity`.
    """

    def __init__(
        self, table: pa.Table, similar: tuple[SentenceTransformer, np.ndarray, float] | None = None
    ) -> None:
        self.table, self._similar = table, similar
        normal = normalised(table["text"].combine_chunks())
        rows, grams = ngrams(normal)
        self._counts = np.bincount(rows, minlength=len(normal))
        self._known = [np.unique(of) for of in (text_hashes(normal), np.append(grams, 0))]
        self._with = [which.T.tocsr() for which in self._which(normal, rows, grams)]

    def find(self, texts: pa.Array, normal: pa.Array) -> list[csr_array]:
        """Return a matrix [n, m] per rule: (i, j) is nonzero if sentence j is found in text i."""
        from scipy.sparse import vstack

        step = max(1, _MOST // len(self.table))
        starts = range(0, max(1, len(texts)), step)
        parts = [self._find(texts.slice(at, step), normal.slice(at, step)) for at in starts]
        return [vstack(of, "csr") for of in zip(*parts, strict=True)]

    def _find(self, texts: pa.Array, normal: pa.Array) -> list[csr_array]:
        from scipy.sparse import csr_array

        rows, grams = ngrams(normal)
        equal, shared = map(matmul, self._which(normal, rows, grams), self._with)
        shared = shared.tocoo()
        counts = np.bincount(rows, minlength=len(normal))[shared.row], self._counts[shared.col]
        shared.data = shared.data >= SHARE * np.minimum(*counts) - 1e-9
        found = [equal, shared]
        if self._similar:
            model, vectors, bound = self._similar
            cosines = embed(model, texts) @ vectors.T if len(texts) else equal.toarray()
            found.append(csr_array(cosines > bound))
        for which in (found := [csr_array(of) for of in found]):
            which.eliminate_zeros()
        return found

    def _which(self, normal: pa.Array, rows: np.ndarray, grams: np.ndarray) -> list[csr_array]:
        from scipy.sparse import csr_array

        found = []
        of_texts = np.arange(len(normal)), text_hashes(normal)
        for known, (texts, hashes) in zip(self._known, (of_texts, (rows, grams)), strict=True):
            at = np.searchsorted(known, hashes)
            there = known.take(at, mode="clip") == hashes
            ones, places = np.ones(there.sum(), np.int32), (texts[there], at[there])
            found.append(csr_array((ones, places), shape=(len(normal), len(known))))
        return found


def first_found(sides: Sequence[Sequence[csr_array]]) -> Iterator[tuple[str, np.ndarray, pa.Array]]:
    """Yield (rule, rows, the index of the first evaluation sentence found in each row).

    Each row occurs at most once, with the first rule that finds a sentence in the row.
    """
    from scipy.sparse import csr_array

    seen = np.zeros(1, bool)
    for rule, found in zip(RULES, zip(*sides, strict=True), strict=False):
        which = csr_array(sum(found))
        which.sort_indices()
        rows = np.flatnonzero(np.diff(which.indptr).astype(bool) & ~seen)
        seen = seen | np.diff(which.indptr).astype(bool)
        yield rule, rows, pa.array(which.indices[which.indptr[rows]])


def ngrams(normal: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct n-grams of each text: text indices, int64 [k], and hashes, uint64 [k].

    In scripts without spaces, each letter counts as a word.
    """
    data = np.frombuffer(normal.buffers()[2] or b"", np.uint8)
    if len(data) and data.max() >= _UNSPACED:
        spaced = pc.replace_substring_regex(normal, rf"[{UNSPACED_SCRIPTS}]\p{{M}}*", r" \0 ")
        normal = pc.utf8_trim(pc.replace_substring_regex(spaced, " +", " "), " ")
    words = pc.split_pattern(normal, " ")
    coded = words.flatten().dictionary_encode()
    hashes = text_hashes(coded.dictionary)[coded.indices.to_numpy()]
    lengths = pc.list_value_length(words).to_numpy()
    places = np.arange(len(hashes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = np.flatnonzero(places <= np.repeat(lengths, lengths) - WORDS)
    grams = np.zeros(len(first), np.uint64)
    for place in range(WORDS):
        grams = splitmix64(grams ^ hashes[first + place])
    rows = np.repeat(np.arange(len(normal)), lengths)[first]
    once = np.unique(grams ^ splitmix64(rows.astype(np.uint64)), return_index=True)[1]
    return rows[once], grams[once]


def embed(model: SentenceTransformer, texts: pa.Array) -> np.ndarray:
    """Return the unit vectors of n texts: float32 [n, dim]. Equal texts are encoded once."""
    coded = texts.dictionary_encode()
    vectors = encode(model, coded.dictionary.to_pylist())
    return np.asarray(vectors[coded.indices.to_numpy()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Finds evaluation sentences in a corpus. A worker process opens the sentences once."""

    folder: str  # folder of the stage `exclude`
    digest: str  # digest of the folder
    similarity: float | None = None  # threshold of the cosine; None: do not use an encoder
    model: str | None = None  # the encoder (sentence-transformers)

    def reasons(self, texts: Sequence[pa.Array], normal: Sequence[pa.Array]) -> np.ndarray:
        """Return the reason for rejecting each of n pairs, or "": object [n].

        Both arguments have an array for each side.
        """
        sentences = _opened(self)
        sides = [sentences.find(*side) for side in zip(texts, normal, strict=True)]
        reasons = np.full(len(normal[0]), "", object)
        for rule, rows, held in first_found(sides):
            reasons[rows] = [
                f"{excluded(of['data_set'], rule)}{ROW_NUMBER}{of['row']}"
                for of in sentences.table.take(held).to_pylist()
            ]
        return reasons


def excluded(data_set: str, rule: str) -> str:
    """Return the reason for rejection, without the number of the row."""
    return f"in {data_set} ({rule})"


@lru_cache(maxsize=2)
def _opened(of: Exclusion) -> EvaluationSentences:
    folder = Path(localise(of.folder))
    table = pq.read_table(folder / SENTENCES)
    if of.similarity is None or of.model is None:
        return EvaluationSentences(table)
    model, vectors = open_sentence_model(Path(localise(of.model))), np.load(folder / VECTORS)
    return EvaluationSentences(table, (model, vectors, of.similarity))
