"""Statistics of corpora (ParaNMT, Table 2), computed block by block; the same on any runner.

Two passes: the first counts words (and parses) for the entropies and the IDF; the second computes
means over sentences and pairs. Moments of blocks are merged in the order of the blocks, so that the
result does not depend on the number of workers.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.beam_jobs.analysis.collect import collect, concatenate
from paraloom.beam_jobs.analysis.idf import MERGE_COUNTS
from paraloom.beam_jobs.io import remote, storage
from paraloom.beam_jobs.io.bitext import genres
from paraloom.beam_jobs.transforms.duplicates import row_hash
from paraloom.beam_jobs.transforms.unit_dofn import OneCoreDoFn
from paraloom.models.errors import UserError, reading
from paraloom.models.hashing import threshold
from paraloom.models.languages import ENGLISH
from paraloom.models.text.idf import (
    COUNTS,
    WordCounts,
    compact_idf,
    count_kinds,
    count_words,
    merge_counts,
    write_idf,
)
from paraloom.models.text.statistics import Moments, entropy, sentence_moments
from paraloom.models.text.tokens import PairText
from paraloom.models.text.vectors import WordVectors, open_vectors

VERSION = 2
"""Bump when the statistics change for the same input."""

SIDES = ("reference", "translation")
SAMPLED = 100_000
"""Approximate maximum of pairs for the entropies, sampled by a hash of their texts, as ParaNMT's
Table 2: the entropy of words grows with the number of sentences, and parsing is slow."""

_DOCUMENTS = "references"  # name of the counts for the IDF
_Counted = tuple[tuple[int, str], Any]  # the number of a corpus, the name of the counts, the counts
_BATCH = 4_096  # rows in memory
_BLOCK = 50_000  # rows of a large file that one worker reads
_COUNTS = pa.schema([("corpus", pa.int64()), ("name", pa.string()), ("texts", pa.int64()), *COUNTS])
_MOMENTS = pa.schema(
    {
        **{"corpus": pa.int64(), "block": pa.int64(), "statistic": pa.string()},
        **{"count": pa.int64(), "mean": pa.float64(), "squares": pa.float64()},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusBlock:
    """A unit of work: some row groups of a Parquet file."""

    corpus: int
    index: int
    path: str
    groups: tuple[int, ...]
    rows: int
    language: str

    key = ""

    @property
    def name(self) -> str:
        """Unique among the blocks of all corpora."""
        return f"{self.corpus:03d}-{self.index:06d}"


def find_blocks(corpus: int, paths: Sequence[str], language: str = ENGLISH) -> list[CorpusBlock]:
    """The blocks of a corpus of Parquet files in `language`."""
    found: list[CorpusBlock] = []
    for path in paths:
        file = _open(path)
        if missing := set(SIDES).difference(file.schema_arrow.names):
            raise UserError(f"{path}: has no column {min(missing)}")
        all_groups = range(file.num_row_groups)
        step = max(len(all_groups) * _BLOCK // max(file.metadata.num_rows, 1), 1)
        for start in all_groups[::step]:
            groups = tuple(all_groups[start : start + step])
            rows = sum(file.metadata.row_group(group).num_rows for group in groups)
            place: Any = {"corpus": corpus, "index": len(found), "path": path}
            found.append(CorpusBlock(**place, groups=groups, rows=rows, language=language))
    return found


def run(
    blocks: Sequence[CorpusBlock],
    output: str,
    arguments: Sequence[str],
    *,
    spacy: str | None = None,
    idf: str | None = None,
) -> list[dict[str, Moments]]:
    """The statistics of every corpus of `blocks`, by name.

    Args:
        output: a folder for intermediate files that all workers can access; the IDF stays there.
        spacy: the spaCy pipeline that parses; None skips the entropy of parses.
        idf: IDF in text form; None computes it from the references of all corpora.

    Returns:
        For every corpus, in order: tokens, IDF (of sentences) and entropies (of words, of parses)
        of both sides, and every score of the corpus; mean and standard deviation of each. The mean
        of `genre_<name>` is the share of CzEng's pairs that have this genre.
    """
    sizes = Counter[int]()
    for block in blocks:
        sizes[block.corpus] += block.rows
    shares = {corpus: min(1.0, SAMPLED / max(rows, 1)) for corpus, rows in sizes.items()}
    counting = (
        "Count" >> beam.ParDo(_Count(shares, spacy, idf is None)).with_output_types(_Counted)
        | "Add" >> beam.CombinePerKey(MERGE_COUNTS)
        | "As table" >> beam.Map(_as_table)
        | "Together" >> beam.CombineGlobally(concatenate(_COUNTS))
    )
    counts = _by_name(collect("count words", blocks, counting, output, arguments))
    table = storage.join(output, "idf")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch if storage.is_remote(output) else output)
        if idf is None:
            references = merge_counts(c for name, c in counts.items() if name[1] == _DOCUMENTS)
            idf = str(folder / "idf.txt")
            write_idf(references, Path(idf))
        compact_idf(idf, folder / "idf")
        remote.publish(folder / "idf", table)
    measuring = "Measure" >> beam.ParDo(_Measure(table)).with_output_types(
        Any
    ) | "Together" >> beam.CombineGlobally(concatenate(_MOMENTS))
    measured = collect("measure", blocks, measuring, output, arguments)
    found = [defaultdict[str, Moments](Moments) for _ in range(1 + max(sizes, default=-1))]
    for row in measured.sort_by([("corpus", "ascending"), ("block", "ascending")]).to_pylist():
        moments = Moments(row["count"], row["mean"], row["squares"])
        found[row["corpus"]][row["statistic"]] += moments
    for (corpus, name), of in counts.items():
        occurrences = of.table["occurrences"].to_numpy()
        if name == "genre":
            genres = of.table.sort_by([("occurrences", "descending"), ("word", "ascending")])
            total = occurrences.sum()
            for row in genres.to_pylist():  # the moments of zeros, and of a one for each occurrence
                share, ones = row["occurrences"] / total, row["occurrences"]
                found[corpus][f"genre_{row['word']}"] = Moments(total, share, ones * (1 - share))
        elif name != _DOCUMENTS:
            found[corpus][f"{name}_entropy"] = entropy(occurrences)
    return [dict(of) for of in found]


@dataclass(eq=False)
class _Count(OneCoreDoFn):
    shares: Mapping[int, float]  # of the pairs of each corpus, which entropies are computed on
    spacy: str | None
    documents: bool  # whether words are counted in all references, for their IDF

    def setup(self) -> None:
        super().setup()
        if self.spacy:
            from paraloom.models.text.parses import Parser

            self.parser = Parser(self.spacy)

    def process(self, block: CorpusBlock) -> Iterator[tuple[tuple[int, str], WordCounts]]:
        parts = defaultdict[str, list[WordCounts]](list)
        share = self.shares[block.corpus]
        for batch in _batches(block, lambda field: field.name == "id"):
            hashes = row_hash(*(batch[side] for side in SIDES))[:, 0]
            sampled = pa.array(hashes <= threshold(share))
            for side in SIDES:
                texts = batch[side].filter(sampled)
                parts[f"{side}_vocabulary"].append(count_words(texts, block.language))
                if self.spacy:
                    parses = pa.array(self.parser.top_levels(texts.to_pylist()), pa.string())
                    parts[f"{side}_parse"].append(count_kinds(parses))
            if self.documents:
                all_words = parts["reference_vocabulary"][-1]
                if share < 1:
                    all_words = count_words(batch["reference"], block.language)
                parts[_DOCUMENTS].append(all_words)
            if "id" in batch and len(found := genres(batch["id"]).drop_null()):
                parts["genre"].append(count_kinds(found))
        for name, counts in parts.items():
            yield (block.corpus, name), merge_counts(counts)


@dataclass(eq=False)
class _Measure(OneCoreDoFn):
    idf: str

    def setup(self) -> None:
        super().setup()
        self.table: WordVectors = open_vectors(remote.localise(self.idf))

    def process(self, block: CorpusBlock) -> Iterator[pa.Table]:
        total = defaultdict[str, Moments](Moments)
        for batch in _batches(block, lambda field: pa.types.is_floating(field.type)):
            found = {}
            for name, column in batch.items():
                if pa.types.is_floating(column.type):
                    values = column.drop_null().to_numpy(zero_copy_only=False)
                    found[name] = Moments.of(values[np.isfinite(values)])
            # Last, since a column may have the name of a statistic
            pairs = PairText(batch["reference"], batch["translation"], language=block.language)
            found |= sentence_moments(pairs, self.table)
            for name, moments in found.items():
                total[name] += moments
        rows = [
            {"corpus": block.corpus, "block": block.index, "statistic": name} | asdict(of)
            for name, of in total.items()
        ]
        yield pa.Table.from_pylist(rows, _MOMENTS)


def _open(path: str) -> pq.ParquetFile:
    with reading(path):
        if storage.is_remote(path):
            return pq.ParquetFile(pa.BufferReader(storage.read_bytes(path)))
        return pq.ParquetFile(path, memory_map=True)


def _batches(block: CorpusBlock, more: Callable[[pa.Field], bool]) -> Iterator[dict[str, pa.Array]]:
    """The texts and the wanted other columns, in batches of rows."""
    file = _open(block.path)
    columns = [*SIDES, *(field.name for field in file.schema_arrow if more(field))]
    with reading(block.path):
        for batch in file.iter_batches(_BATCH, list(block.groups), columns, use_threads=False):
            read = {name: batch[name] for name in columns}
            for side in SIDES:
                read[side] = pc.fill_null(read[side].cast(pa.string()), "")
            yield read


def _as_table(element: tuple[tuple[int, str], WordCounts]) -> pa.Table:
    (corpus, name), counts = element
    rows = counts.table.num_rows
    constant = [[value] * rows for value in (corpus, name, counts.documents)]
    return pa.table([*constant, *counts.table.columns], schema=_COUNTS)


def _by_name(table: pa.Table) -> dict[tuple[int, str], WordCounts]:
    """Word counts by corpus and name; the inverse of `_as_table`."""
    found = {}
    keys = table.group_by(["corpus", "name", "texts"]).aggregate([]).sort_by("corpus")
    for corpus, name, texts in zip(
        *(keys[key].to_pylist() for key in _COUNTS.names[:3]), strict=True
    ):
        here = (pc.field("corpus") == corpus) & (pc.field("name") == name)
        found[corpus, name] = WordCounts(texts, table.filter(here).select(COUNTS.names))
    return found
