"""Counting the words of a corpus, shard by shard: what inverse document frequencies come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apache_beam as beam
import pyarrow as pa

from beam_jobs.analysis.collect import collect
from beam_jobs.io.shards import Unit, read_shard
from models.text.idf import WordCounts, count_words, merge_counts

VERSION = 1
"""Raised when the job counts otherwise."""

_DOCUMENTS = b"documents"  # in the metadata of a table's schema


class MergeCounts(beam.CombineFn):
    """Counts of shards into counts of the corpus.

    Memory grows with the vocabulary, not with the corpus: parts are merged as soon as they are as
    large as what they are merged into, so that every word is moved only a few times.
    """

    def create_accumulator(self) -> list[WordCounts]:
        """Nothing counted yet."""
        return []

    def add_input(self, parts: list[WordCounts], counts: WordCounts) -> list[WordCounts]:
        """Add the counts of a shard; the first part is the merged one."""
        parts = [*parts, counts]
        merged, *pending = (part.table.num_rows for part in parts)
        return [merge_counts(parts)] if sum(pending) >= merged else parts

    def merge_accumulators(self, many: Iterable[list[WordCounts]]) -> list[WordCounts]:
        """Bring together what several workers counted."""
        return [merge_counts(part for parts in many for part in parts)]

    def extract_output(self, parts: list[WordCounts]) -> WordCounts:
        """All counts, words in order."""
        return merge_counts(parts)


class CountWords(beam.PTransform):
    """Units in, one `WordCounts` out: of a column of texts, as one table with its metadata."""

    def __init__(self, column: str):
        super().__init__()
        self.column = column

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Count shard by shard and add up."""
        column = self.column

        def count(unit: Unit) -> WordCounts:
            return count_words(read_shard(unit.shard, [column])[column].combine_chunks())

        counts = units | "Count" >> beam.Map(count) | "Add" >> beam.CombineGlobally(MergeCounts())
        return counts | "As table" >> beam.Map(_as_table)


def run(
    units: Sequence[Unit], output: str, arguments: Sequence[str], *, column: str = "reference"
) -> WordCounts:
    """Count the words of a column of `units`; `output` is a folder for what passes on the way."""
    table = collect("idf", units, CountWords(column), output, arguments)
    return WordCounts(int(table.schema.metadata[_DOCUMENTS]), table.replace_schema_metadata())


def _as_table(counts: WordCounts) -> pa.Table:
    return counts.table.replace_schema_metadata({_DOCUMENTS: str(counts.documents)})
