"""Count the words of each shard and add the counts, for inverse document frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import apache_beam as beam
import pyarrow as pa

from paraloom.beam_jobs.engine.collect import collect
from paraloom.beam_jobs.engine.shards import Unit, read_shard
from paraloom.beam_jobs.transforms.merging import Merge
from paraloom.models.languages import ENGLISH
from paraloom.models.text.idf import WordCounts, count_words, merge_counts

_DOCUMENTS = b"documents"  # key in the metadata of the table's schema
MERGE_COUNTS = Merge(merge_counts, attrgetter("table.num_rows"))  # adds the counts of all shards


def run(
    units: Sequence[Unit], output: str, arguments: Sequence[str], *, language: str = ENGLISH
) -> WordCounts:
    """Count the words of the references. The folder `output` stores temporary files."""

    def count(unit: Unit) -> WordCounts:
        references = read_shard(unit.shard, ["reference"])["reference"]
        return count_words(references.combine_chunks(), language)

    def as_table(counts: WordCounts) -> pa.Table:
        return counts.table.replace_schema_metadata({_DOCUMENTS: str(counts.documents)})

    add = "Add" >> beam.CombineGlobally(MERGE_COUNTS)
    words = "Count" >> beam.Map(count) | add | "As table" >> beam.Map(as_table)
    table = collect("idf", units, words, output, arguments)
    return WordCounts(int(table.schema.metadata[_DOCUMENTS]), table.replace_schema_metadata())
