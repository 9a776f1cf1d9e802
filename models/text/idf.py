"""Inverse document frequencies: counted in parts, merged, kept as vectors of length 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from models.errors import UserError
from models.text.tokens import moses_tokens
from models.text.vectors import UNKNOWN, WordVectors, compact_vectors, open_vectors, write_vectors

_SCHEMA = pa.schema([("word", pa.string()), ("documents", pa.int64()), ("occurrences", pa.int64())])


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How often each word occurs in so many texts.

    `table` has a `word` a row, the `documents` (texts) that have it, and its `occurrences` in all.
    """

    documents: int
    table: pa.Table


def count_words(texts: pa.Array) -> WordCounts:
    """Count the lower-cased Moses tokens of some thousand texts; each text is a document."""
    tokens = moses_tokens(texts)
    words = tokens.values.dictionary_encode()
    ids, size = words.indices.to_numpy(), len(words.dictionary)
    rows = np.repeat(np.arange(len(tokens)), np.diff(tokens.offsets.to_numpy()))
    once = np.unique(rows * max(size, 1) + ids) % max(size, 1)
    documents, occurrences = (np.bincount(of, minlength=size) for of in (once, ids))
    table = pa.table([words.dictionary, documents, occurrences], schema=_SCHEMA)
    return WordCounts(len(tokens), table)


def count_kinds(values: pa.StringArray) -> WordCounts:
    """Count values that are wholes, each a text of one word: no tokens in them."""
    counted = values.value_counts()
    words, occurrences = counted.field("values"), counted.field("counts")
    return WordCounts(len(values), pa.table([words, occurrences, occurrences], schema=_SCHEMA))


def merge_counts(parts: Iterable[WordCounts]) -> WordCounts:
    """Add up counts of different texts; the order of the parts does not matter."""
    parts = list(parts)
    table = pa.concat_tables([_SCHEMA.empty_table(), *(part.table for part in parts)])
    sums = table.group_by("word").aggregate([("documents", "sum"), ("occurrences", "sum")])
    sums = sums.sort_by("word")
    columns = [sums["word"], sums["documents_sum"], sums["occurrences_sum"]]
    return WordCounts(sum(part.documents for part in parts), pa.table(columns, schema=_SCHEMA))


def idf_table(counts: WordCounts) -> WordVectors:
    """ln((1 + texts) / (1 + texts with it)) of every word, and of unknown words, which are in none.

    `models.text.vectors` writes, reads and shares it like other vectors; the row for unknown words
    comes first.
    """
    words = pa.concat_arrays([pa.array([UNKNOWN]), counts.table["word"].combine_chunks()])
    documents = np.append(0, counts.table["documents"].to_numpy())
    idf = np.log((1 + counts.documents) / (1 + documents)).astype(np.float32)
    return WordVectors(words, idf[:, np.newaxis])


def write_idf(counts: WordCounts, text: Path) -> None:
    """Write the table of `counts` in text form: `word idf` a line."""
    table = idf_table(counts)
    write_vectors(text, table.words, table.matrix)


def compact_idf(text: Path | str, folder: Path | str) -> int:
    """Turn the text form into the compact one of `models.text.vectors`; how many words it has.

    Raises:
        UserError: as `compact_vectors`, or there is more than one number a word.
    """
    compact_vectors(text, folder)
    found = open_vectors(folder)
    if found.dim != 1:
        raise UserError(f"{text}: {found.dim} numbers a word, but an IDF is one")
    return len(found)
