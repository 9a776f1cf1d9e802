"""Inverse document frequencies (IDF), which are stored as word vectors with one dimension."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.text.tokens import moses_tokens
from paraloom.models.text.vectors import (
    UNKNOWN,
    WordVectors,
    compact_vectors,
    open_vectors,
    write_vectors,
)

COUNTS = pa.schema([("word", pa.string()), ("documents", pa.int64()), ("occurrences", pa.int64())])


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Counts of words in texts."""

    documents: int  # number of texts
    table: pa.Table  # `COUNTS`: word, number of texts that contain it, occurrences in all texts


def count_words(texts: pa.Array, language: str = ENGLISH) -> WordCounts:
    """Count the lower-case Moses tokens in texts. Each text is a document."""
    tokens = moses_tokens(texts, language)
    words = tokens.values.dictionary_encode()
    ids, size = words.indices.to_numpy(), len(words.dictionary)
    rows = np.repeat(np.arange(len(tokens)), np.diff(tokens.offsets.to_numpy()))
    once = np.unique(rows * max(size, 1) + ids) % max(size, 1)
    documents, occurrences = (np.bincount(of, minlength=size) for of in (once, ids))
    table = pa.table([words.dictionary, documents, occurrences], schema=COUNTS)
    return WordCounts(len(tokens), table)


def merge_counts(parts: Iterable[WordCounts]) -> WordCounts:
    """Add counts from disjoint sets of texts."""
    parts = list(parts)
    table = pa.concat_tables([COUNTS.empty_table(), *(part.table for part in parts)])
    sums = table.group_by("word").aggregate([("documents", "sum"), ("occurrences", "sum")])
    sums = sums.sort_by("word")
    columns = [sums["word"], sums["documents_sum"], sums["occurrences_sum"]]
    return WordCounts(sum(part.documents for part in parts), pa.table(columns, schema=COUNTS))


def idf_table(counts: WordCounts) -> WordVectors:
    """Compute ln((1 + texts) / (1 + texts with the word)) for each word.

    The first row is for unknown words, which occur in 0 texts.
    """
    words = pa.concat_arrays([pa.array([UNKNOWN]), counts.table["word"].combine_chunks()])
    documents = np.append(0, counts.table["documents"].to_numpy())
    idf = np.log((1 + counts.documents) / (1 + documents)).astype(np.float32)
    return WordVectors(words, idf[:, np.newaxis])


def write_idf(counts: WordCounts, text: Path) -> None:
    """Write a text file with a word and its IDF per line."""
    table = idf_table(counts)
    write_vectors(text, table.words, table.matrix)


def compact_idf(text: Path | str, folder: Path | str) -> int:
    """Convert an IDF file to the compact form of word vectors, and return the number of words."""
    compact_vectors(text, folder)
    found = open_vectors(folder)
    if found.dim != 1:
        raise UserError(f"{text}: {found.dim} numbers per word, but an IDF is one number")
    return len(found)
