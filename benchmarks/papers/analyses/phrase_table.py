"""A phrase table of a corpus: counts of pairs of phrases that replace each other.

There are several rounds: each round reads the whole corpus, but counts only the phrase pairs that a
hash assigns to it, so that memory does not grow with the corpus. The table is the same on any
runner.
"""

import gzip
import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.collect import collect
from paraloom.beam_jobs.engine.shards import Unit, read_shard, receipts, units
from paraloom.beam_jobs.transforms.equal_texts import row_hash
from paraloom.beam_jobs.transforms.merging import Merge
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.printing import show
from paraloom.models.text.tokens import PairText
from paraloom.papers.analyses.phrase_pairs import SCHEMA, find_phrases, merge_phrases
from paraloom.pipeline.commands.options import RunFolder, beam_options
from paraloom.pipeline.run.folder import as_made, read_run

ROWS = 2_000_000
"""Sentence pairs per round."""

_PARTITIONS = 16  # of a round; one worker counts each partition
_BATCH = 4_096  # sentence pairs aligned at once


def count_phrases(
    units: Sequence[Unit],
    table: str,
    arguments: Sequence[str],
    *,
    min_count: int = 2,
    language: str = ENGLISH,
) -> int:
    """Write the phrase table of the shards of `units`, in PPDB's text form, as gzip.

    A line is `[X] ||| phrase ||| paraphrase ||| Count=n`; the most frequent pairs come first.

    Args:
        table: path of the file; on any file system that Beam supports.
        min_count: pairs that occur less often are left out.
        language: the language of both sides.

    Returns:
        the number of pairs.
    """

    def frequent(element: tuple[int, pa.Table]) -> pa.Table:
        return element[1].filter(pc.greater_equal(element[1]["count"], min_count))

    def concatenated(tables: Iterable[pa.Table]) -> pa.Table:
        return pa.concat_tables([SCHEMA.empty_table(), *tables])

    rounds = 1 + sum(unit.rows for unit in units) // ROWS
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / f"{number}.arrow" for number in range(rounds)]
        for number, part in enumerate(parts):
            name = "phrases" if rounds == 1 else f"phrases {number + 1} of {rounds}"
            counting = (
                "Count" >> beam.FlatMap(_count, np.uint64(number), np.uint64(rounds), language)
                | "Add" >> beam.CombinePerKey(Merge(merge_phrases, attrgetter("num_rows")))
                | "Frequent" >> beam.Map(frequent)
                | "Together" >> beam.CombineGlobally(concatenated)
            )
            found = collect(name, units, counting, str(Path(folder) / "output"), arguments)
            order = [("count", "descending"), ("phrase", "ascending"), ("paraphrase", "ascending")]
            with pa.ipc.new_file(part, SCHEMA) as writer:
                writer.write_table(found.sort_by(order), max_chunksize=_BATCH)
        return _write(table, parts)


def _count(
    unit: Unit, number: np.uint64, rounds: np.uint64, language: str
) -> Iterator[tuple[int, pa.Table]]:
    pa.set_cpu_count(1)  # the runner decides how many units are counted in parallel
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
    """Merge the sorted tables of all rounds into one file, row by row."""
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
    """The rows of a table with negated counts, so that they sort by count, then by text."""
    with pa.memory_map(str(part)) as source:
        reader = pa.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            texts, others, counts = (of.to_pylist() for of in reader.get_batch(i).columns)
            yield from zip([-count for count in counts], texts, others, strict=True)


def command(
    context: typer.Context,
    run: RunFolder,
    min_count: Annotated[
        int,
        typer.Option(
            metavar="N", help="Leave out phrase pairs that occur less often in the whole corpus."
        ),
    ] = 2,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Table to write. Default: RUN/phrases.txt.gz."),
    ] = None,
) -> None:
    """Write the phrase pairs by which the two sides of a run's sentence pairs differ, with counts.

    Workers on other machines need a shared folder for temporary files; set TMPDIR to it.
    """
    if min_count < 1:
        raise UserError(f"--min-count {min_count}: must be at least 1")
    shards = [s for receipt in receipts(storage.join(run, "corpus")) for s in receipt.shards]
    if not shards:
        raise UserError(f"{run}: no run with a corpus; `paraloom select` makes one")
    table = out or storage.join(run, "phrases.txt.gz")
    work = units(shards, "phrases")
    found = count_phrases(
        work,
        table,
        beam_options(context),
        min_count=min_count,
        language=as_made(read_run(run)).config.language,
    )
    pairs = sum(shard.rows for shard in shards)
    if not found:
        storage.remove(table)
        raise UserError(
            f"{run}: no phrase pair occurs {min_count} times in {pairs:,} sentence pairs; lower "
            "--min-count or make a larger corpus"
        )
    show(f"{table}: {found:,} phrase pairs of {pairs:,} sentence pairs")
