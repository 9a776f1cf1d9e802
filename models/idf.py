"""Inverse document frequencies: counted in parts, merged, kept as vectors of length 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from models.tokens import moses_tokens
from models.vectors import UNKNOWN, WordVectors

_SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])


@dataclass(frozen=True, eq=False)
class DocumentCounts:
    """In how many of `documents` texts each word occurs: a table of `word` and `count`."""

    documents: int
    table: pa.Table


def count_documents(texts: pa.Array) -> DocumentCounts:
    """Count the lower-cased Moses tokens of some thousand texts; each text is a document."""
    tokens = moses_tokens(texts)
    words = tokens.values.dictionary_encode()
    size = max(len(words.dictionary), 1)
    rows = np.repeat(np.arange(len(tokens)), np.diff(tokens.offsets.to_numpy()))
    once = np.unique(rows * size + words.indices.to_numpy()) % size
    counts = np.bincount(once, minlength=len(words.dictionary))
    return DocumentCounts(len(tokens), pa.table([words.dictionary, counts], schema=_SCHEMA))


def merge_counts(parts: Iterable[DocumentCounts]) -> DocumentCounts:
    """Add up counts of different texts; the order of the parts does not matter."""
    parts = list(parts)
    table = pa.concat_tables([_SCHEMA.empty_table(), *(part.table for part in parts)])
    sums = table.group_by("word").aggregate([("count", "sum")]).sort_by("word")
    merged = pa.table([sums["word"], sums["count_sum"]], schema=_SCHEMA)
    return DocumentCounts(sum(part.documents for part in parts), merged)


def idf_table(counts: DocumentCounts) -> WordVectors:
    """ln((1 + documents) / (1 + count)) of every word, and for unknown words, whose count is 0.

    `models.vectors` writes, reads and shares it like other vectors; the row for unknown words
    comes first.
    """
    words = pa.concat_arrays([pa.array([UNKNOWN]), counts.table["word"].combine_chunks()])
    count = np.append(0, counts.table["count"].to_numpy())
    idf = np.log((1 + counts.documents) / (1 + count)).astype(np.float32)
    return WordVectors(words, idf[:, np.newaxis])
