"""Evaluation sentences in a corpus: equal, sharing n-grams, or similar by an encoder.

Equal: of the same letters and digits, as for duplicate pairs. n-grams: a sentence contains the
other or is contained in it, if of the shorter one's 5-grams of words at least 70% are in the other.
Brown et al. (2020), appendix C, take n-grams as long as the 5th percentile of the examples, 8 to 13
words; of STS and SICK the 5th percentile is 5 words. The 70% are of Chowdhery et al. (2022),
section 8, there of 8-grams. Sentences of fewer words must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.beam_jobs.io.remote import localise
from paraloom.beam_jobs.io.shards import ROW
from paraloom.beam_jobs.transforms.duplicates import normalised
from paraloom.beam_jobs.transforms.first_occurrences import slots
from paraloom.models.hashing import splitmix64, text_hashes
from paraloom.models.scorers.learned.sentence_similarity import open_sentence_model
from paraloom.models.text.tokens import UNSPACED_SCRIPTS

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

RULES = ("equal", "n-grams", "similarity")
"""What finds an evaluation sentence; a row of a corpus goes by the first one that holds."""

WORDS = 5
"""Words of an n-gram."""
SHARE = 0.7
"""Of the n-grams of the shorter sentence, which the longer one must have."""

SENTENCES, VECTORS = "sentences.parquet", "vectors.npy"
"""Files of the stage `exclude`: what it found in the data sets, and their vectors."""

_MOST = 1 << 24  # numbers at once, of matching n-grams or of cosines
_UNSPACED = 0xE0  # the first byte of a letter of these scripts in UTF-8 is not smaller


class Hits(NamedTuple):
    """Texts that an evaluation sentence is found in: int64 [k], by text, rule and sentence."""

    rows: np.ndarray
    rules: np.ndarray  # indices of RULES
    sentences: np.ndarray

    @classmethod
    def together(cls, *found: Hits) -> Hits:
        """All of several, in order, none twice."""
        columns = np.concatenate([np.empty((3, 0), np.int64), *map(np.stack, found)], axis=1)
        return cls(*np.unique(columns, axis=1))

    def first(self) -> Hits:
        """The first of each row."""
        at = np.unique(self.rows, return_index=True)[1]
        return Hits(*(column[at] for column in self))


class _Postings:
    """Sentences by hash."""

    def __init__(self, hashes: np.ndarray, sentences: np.ndarray) -> None:
        order = np.lexsort((sentences, hashes))
        self.hashes, self.sentences = hashes[order], sentences[order]
        bits = min(max(int(16 * len(order)).bit_length(), 16), 28)
        self._shift = np.uint64(64 - bits)
        self._some = np.zeros(1 << bits, bool)  # few of the others pass here, and quickly
        self._some[self.hashes >> self._shift] = True

    def known(self, hashes: np.ndarray) -> np.ndarray:
        """The indices of those hashes that some sentence has: ascending."""
        maybe = np.flatnonzero(self._some[hashes >> self._shift])
        at = np.searchsorted(self.hashes, hashes[maybe])
        known = self.hashes[np.minimum(at, len(self.hashes) - 1)] == hashes[maybe]
        return np.asarray(maybe[known])

    def find(self, rows: np.ndarray, hashes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The row of each hash, ascending, with each sentence that has the hash; a block has all of
        a row."""
        at = self.known(hashes)
        rows, hashes = rows[at], hashes[at]
        first, end = (np.searchsorted(self.hashes, hashes, side) for side in ("left", "right"))
        block = (np.cumsum(end - first) // _MOST)[np.searchsorted(rows, rows)]
        cuts = np.flatnonzero(np.diff(block)) + 1
        for some, wanted in zip(np.split(rows, cuts), np.split(hashes, cuts), strict=True):
            which, place = slots(self.hashes, wanted)
            yield some[which], self.sentences[place]


class EvaluationSentences:
    """Sentences of data sets, indexed.

    Args:
        table: data_set, row (its number in the file) and text of each.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        normal = normalised(table["text"].combine_chunks())
        self._equal = _Postings(text_hashes(normal), np.arange(len(normal)))
        rows, grams = _distinct(*ngrams(normal))
        self._counts = np.bincount(rows, minlength=len(normal))
        self._ngrams = _Postings(grams, rows)

    def find(self, normal: pa.Array) -> Hits:
        """The evaluation sentences that `normalised` texts equal, contain or are contained in."""
        equal = self._equal.find(np.arange(len(normal)), text_hashes(normal))
        found = [_hits(0, rows, sentences) for rows, sentences in equal]
        rows, grams = ngrams(normal)
        likely = np.isin(rows, rows[self._ngrams.known(grams)])
        rows, grams = _distinct(rows[likely], grams[likely])
        counts = np.bincount(rows, minlength=len(normal))
        for row, sentence in self._ngrams.find(rows, grams):
            pairs, shared = np.unique(row * len(self._counts) + sentence, return_counts=True)
            row, sentence = np.divmod(pairs, len(self._counts))
            shorter = np.minimum(counts[row], self._counts[sentence])
            holds = shared >= SHARE * shorter - 1e-9
            found.append(_hits(1, row[holds], sentence[holds]))
        return Hits.together(*found)


def _hits(rule: int, rows: np.ndarray, sentences: np.ndarray) -> Hits:
    return Hits(rows, np.full(len(rows), rule), sentences)


def ngrams(normal: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The row of each n-gram of `normalised` texts, int64 [k], and its hash, uint64 [k].

    In scripts without spaces, a letter is a word.
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
    return np.repeat(np.arange(len(normal)), lengths)[first], grams


def _distinct(rows: np.ndarray, grams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each n-gram of a row once, by row."""
    at = np.unique(grams ^ splitmix64(rows.astype(np.uint64)), return_index=True)[1]
    at.sort()
    return rows[at], grams[at]


@dataclass(frozen=True, eq=False)
class SimilarSentences:
    """Evaluation sentences by the cosine of their vectors with those of texts.

    Attributes:
        vectors: of the sentences, float32 [n, dim], of length 1.
        bound: the cosine of a hit is above it.
    """

    model: SentenceTransformer
    vectors: np.ndarray
    bound: float

    def find(self, texts: pa.Array) -> Hits:
        """The evaluation sentences that texts are similar to."""
        vectors, step, found = embed(self.model, texts), max(1, _MOST // len(self.vectors)), []
        for start in range(0, len(vectors), step):
            cosines = vectors[start : start + step] @ self.vectors.T
            rows, sentences = np.nonzero(cosines > self.bound)
            found.append(_hits(2, rows + start, sentences))
        return Hits.together(*found)


def embed(model: SentenceTransformer, texts: pa.Array) -> np.ndarray:
    """Vectors of length 1, made once of equal texts: float32 [n, dim]."""
    coded = texts.dictionary_encode()
    vectors = model.encode(
        coded.dictionary.to_pylist(), normalize_embeddings=True, show_progress_bar=False
    )
    return np.asarray(np.asarray(vectors, np.float32)[coded.indices.to_numpy()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """What keeps evaluation sentences out of a corpus; workers open it once a process.

    Attributes:
        folder: of the stage `exclude`, whose result has this digest.
        similarity: a pair with a higher cosine goes out; None: cosines do not count.
        model: a model of sentence-transformers, where they do.
    """

    folder: str
    digest: str
    similarity: float | None = None
    model: str | None = None

    def reasons(self, texts: Sequence[pa.Array], normal: Sequence[pa.Array]) -> np.ndarray:
        """Why rows are rejected: object [n], "" for others. Both have a column for each side."""
        sentences, similar = _opened(self)
        reasons = np.full(len(normal[0]), "", object)
        self._name(Hits.together(*map(sentences.find, normal)), sentences.table, reasons)
        if similar:
            left = np.flatnonzero(reasons == "")
            found = (similar.find(side.take(pa.array(left))) for side in texts)
            hits = Hits.together(*found)
            self._name(hits._replace(rows=left[hits.rows]), sentences.table, reasons)
        return reasons

    @staticmethod
    def _name(hits: Hits, table: pa.Table, reasons: np.ndarray) -> None:
        first = hits.first()
        named = table.take(pa.array(first.sentences)).to_pylist()
        reasons[first.rows] = [
            f"{excluded(of['data_set'], RULES[rule])}{ROW}{of['row']}"
            for of, rule in zip(named, first.rules, strict=True)
        ]


def excluded(data_set: str, rule: str) -> str:
    """The reason of such rows, as it is counted: without the number of the sentence's row."""
    return f"in {data_set} ({rule})"


@lru_cache(maxsize=2)
def _opened(of: Exclusion) -> tuple[EvaluationSentences, SimilarSentences | None]:
    folder = Path(localise(of.folder))
    sentences = EvaluationSentences(pq.read_table(folder / SENTENCES))
    if of.similarity is None or of.model is None:
        return sentences, None
    model, vectors = open_sentence_model(Path(localise(of.model))), np.load(folder / VECTORS)
    return sentences, SimilarSentences(model, vectors, of.similarity)
