"""Extraction of a phrase table (pairs of phrases with their counts) from a corpus.

Reference and translation are aligned by a longest common subsequence of their tokens. The spans
between aligned tokens are phrase pairs, with or without the aligned words next to them. For
example, `he jumps off the wall` and `he is jumping from the wall` give the pairs (`jumps off`, `is
jumping from`) and (`he jumps off`, `he is jumping from`).

To limit memory, the corpus is read in rounds, each of which counts a part of the phrase pairs.
"""

import gzip
import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from rapidfuzz.distance import LCSseq

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.collect import collect
from paraloom.beam_jobs.engine.shards import Unit, read_shard, units
from paraloom.beam_jobs.transforms.equal_texts import row_hash
from paraloom.beam_jobs.transforms.merging import Merge
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.printing import show
from paraloom.models.text.tokens import PairText, TokenIds
from paraloom.pipeline.commands.options import RunFolder, beam_options
from paraloom.pipeline.run.folder import as_made, read_run, shards_of

LONGEST = 6
"""Maximum number of words in a phrase."""

SCHEMA = pa.schema([("phrase", pa.string()), ("paraphrase", pa.string()), ("count", pa.int64())])
"""The columns of a phrase table. `phrase` is the text whose bytes sort first."""
ROWS = 2_000_000
"""Sentence pairs per round."""

_PARTITIONS = 16  # number of partitions per round, which are counted in parallel
_BATCH = 4_096  # sentence pairs aligned at once


def count_phrases(
    units: Sequence[Unit],
    table: str,
    arguments: Sequence[str],
    *,
    min_count: int = 2,
    language: str = ENGLISH,
) -> int:
    """Write the phrase table of a corpus in the format of PPDB, compressed by gzip.

    A line is `[X] ||| phrase ||| paraphrase ||| Count=n`. The most frequent pairs come first. Pairs
    that occur less often than `min_count` are skipped. Returns the number of pairs in the table.
    """
    rounds = 1 + sum(unit.rows for unit in units) // ROWS
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / f"{number}.arrow" for number in range(rounds)]
        for number, part in enumerate(parts):
            name = "phrases" if rounds == 1 else f"phrases {number + 1} of {rounds}"
            counting = (
                "Count" >> beam.FlatMap(_count, np.uint64(number), np.uint64(rounds), language)
                | "Add" >> beam.CombinePerKey(Merge(merge_phrases, attrgetter("num_rows")))
                | "Frequent" >> beam.MapTuple(lambda _, table: _frequent(table, min_count))
                | "Together" >> beam.CombineGlobally(_concatenated)
            )
            found = collect(name, units, counting, str(Path(folder) / "output"), arguments)
            order = [("count", "descending"), ("phrase", "ascending"), ("paraphrase", "ascending")]
            with pa.ipc.new_file(part, SCHEMA) as writer:
                writer.write_table(found.sort_by(order), max_chunksize=_BATCH)
        return _write(table, parts)


def _frequent(table: pa.Table, least: int) -> pa.Table:
    return table.filter(pc.greater_equal(table["count"], least))


def _concatenated(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([SCHEMA.empty_table(), *tables])


def _count(
    unit: Unit, number: np.uint64, rounds: np.uint64, language: str
) -> Iterator[tuple[int, pa.Table]]:
    pa.set_cpu_count(1)  # the runner already counts units in parallel
    sides = read_shard(unit.shard, ["reference", "translation"]).to_batches(_BATCH)
    found = merge_phrases(
        find_phrases(PairText(batch["reference"], batch["translation"], language=language))
        for batch in sides
    )
    found = found.combine_chunks()
    hashes = row_hash(*(found[name].combine_chunks() for name in SCHEMA.names[:2]))[:, 0]
    mine = hashes % rounds == number
    partition = hashes // rounds % np.uint64(_PARTITIONS)
    for key in np.unique(partition[mine]):
        yield int(key), found.filter(pa.array(mine & (partition == key)))


def _write(path: str, parts: Sequence[Path]) -> int:
    number = 0
    with (
        storage.writing(path) as raw,
        # Without name and time, the same pairs give the same bytes.
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream,
    ):
        for count, *texts in heapq.merge(*map(_rows, parts)):
            stream.write(f"[X] ||| {' ||| '.join(texts)} ||| Count={-count}\n".encode())
            number += 1
    return number


def _rows(part: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (negated count, phrase, paraphrase), so that the most frequent pairs sort first."""
    with pa.memory_map(str(part)) as source:
        reader = pa.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            texts, others, counts = (of.to_pylist() for of in reader.get_batch(i).columns)
            yield from zip([-count for count in counts], texts, others, strict=True)


def find_phrases(pairs: PairText) -> pa.Table:
    """Return the phrase table of a block of sentence pairs.

    Words consist of letters, and one or both phrases have several words (Zhou et al. 2017).

    >>> pairs = PairText(pa.array(["It is very big ."]), pa.array(["It is huge ."]))
    >>> find_phrases(pairs).to_pylist()[0]
    {'phrase': 'huge', 'paraphrase': 'very big', 'count': 1}
    """
    sides = pairs.reference, pairs.translation
    letters = pc.utf8_is_alpha(pairs.vocabulary).to_numpy(zero_copy_only=False)
    others = [np.concatenate([[0], np.cumsum(~letters[side.ids])]) for side in sides]
    first_tokens, ends, aligned = _gaps(*sides)
    texts: list[list[pa.StringArray]] = [[], []]
    for added in product((0, 1), (0, 1)):  # aligned words before and after
        there = (aligned >= added).all(axis=1)
        spans = list(zip(first_tokens[:, there] - added[0], ends[:, there] + added[1], strict=True))
        shorter, longer = np.sort([end - start for start, end in spans], axis=0)
        keep = (shorter > 0) & (longer > 1) & (longer <= LONGEST)
        for other, (start, end) in zip(others, spans, strict=True):
            keep &= other[end] == other[start]
        for column, side, (start, end) in zip(texts, sides, spans, strict=True):
            column.append(_texts(side, pairs.vocabulary, start[keep], end[keep]))
    left, right = (pa.concat_arrays(column) for column in texts)
    ordered = pc.less(left.cast(pa.binary()), right.cast(pa.binary()))
    first, second = pc.if_else(ordered, left, right), pc.if_else(ordered, right, left)
    ones = pa.array(np.ones(len(first), np.int64))
    return merge_phrases([pa.table([first, second, ones], schema=SCHEMA)])


def merge_phrases(tables: Iterable[pa.Table]) -> pa.Table:
    """Add up the counts of phrase tables. The order of the result is arbitrary."""
    sums = _concatenated(tables).group_by(SCHEMA.names[:2]).aggregate([("count", "sum")])
    return sums.select([*SCHEMA.names[:2], "count_sum"]).rename_columns(SCHEMA.names)


def _gaps(reference: TokenIds, translation: TokenIds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the n pairs of spans between aligned words. One span of a pair may be empty.

    Returns three arrays: the starts of the spans on both sides, int64 [2, n], the ends of the
    spans, int64 [2, n], and whether an aligned word precedes and follows the spans, bool [n, 2].
    """
    ids, other_ids = reference.ids.tolist(), translation.ids.tolist()
    offsets, other_offsets = reference.offsets.tolist(), translation.offsets.tolist()
    found: list[tuple[int, int, int, int, bool, bool]] = []
    for row in range(len(offsets) - 1):
        (first, last), (other, other_last) = offsets[row : row + 2], other_offsets[row : row + 2]
        edits = LCSseq.editops(ids[first:last], other_ids[other:other_last])
        start, other_start = first, other
        for block in edits.as_matching_blocks():  # the last block is empty
            end, other_end = first + block.a, other + block.b
            if end > start or other_end > other_start:
                found.append((start, other_start, end, other_end, start > first, end < last))
            start, other_start = end + block.size, other_end + block.size
    columns = np.array(found, np.int64).reshape(-1, 6).T
    return columns[:2], columns[2:4], columns[4:].T.astype(bool)


def _texts(
    side: TokenIds, words: pa.StringArray, starts: np.ndarray, ends: np.ndarray
) -> pa.StringArray:
    lengths = ends - starts
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    tokens = words.take(pa.array(side.ids[positions]))
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), tokens), " ")


def command(
    context: typer.Context,
    run: RunFolder,
    min_count: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Skip phrase pairs that occur less often in the corpus."
        ),
    ] = 2,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Table to write. Default: RUN/phrases.txt.gz."),
    ] = None,
) -> None:
    """Extract a phrase table (pairs of phrases with counts) from the corpus of a run.

    If workers run on several machines, set TMPDIR to a folder that all machines share.
    """
    shards, record = shards_of(run, "select"), read_run(run)
    if not shards or "select" not in record.stages:
        raise UserError(f"{run}: no run with a corpus; `paraloom select` makes one")
    table = out or storage.join(run, "phrases.txt.gz")
    language, work = as_made(record).config.language, units(shards, "phrases")
    arguments = beam_options(context)
    found = count_phrases(work, table, arguments, min_count=min_count, language=language)
    pairs = sum(shard.rows for shard in shards)
    if not found:
        storage.remove(table)
        raise UserError(
            f"{run}: no phrase pair occurs {min_count} times in {pairs:,} sentence pairs; lower "
            "--min-count or make a larger corpus"
        )
    show(f"{table}: {found:,} phrase pairs of {pairs:,} sentence pairs")
