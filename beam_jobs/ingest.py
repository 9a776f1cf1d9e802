"""Ingest: bitext files into shards of pairs; rows that cannot be used are set apart."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_jobs.io import schema
from beam_jobs.io.bitext import READERS, Bitext, Block, read_bitext
from beam_jobs.io.shards import Receipt, commit, content_key, finished
from beam_jobs.runners.launch import Result, launch
from beam_jobs.transforms.duplicates import FindDuplicates, row_hash

VERSION = 1
"""Raised when the job's rows change for the same input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestUnit:
    """One bitext file (or Moses pair of files), cut into shards by one worker."""

    index: int
    key: str
    bitext: Bitext
    rows: int | None = None  # known only when read

    @property
    def name(self) -> str:
        """The name that the parts begin with; numbered, so that their order is the input's."""
        return f"part-{self.index:05d}"


class Ingest(beam.PTransform):
    """Bitexts in, receipts out. Of rows with the same id, the first one in the input stays.

    Args:
        shard_rows: lines of a file that make one shard.
        max_characters: a longer side is rejected.
        rows: about how many rows there are, for the search for repeated ids.
    """

    def __init__(self, output: str, *, shard_rows: int, max_characters: int, rows: int):
        super().__init__()
        self.output, self.rows = output, rows
        self.limits = {"rows": shard_rows, "max_characters": max_characters}

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find repeated ids over all files in a first reading, write the shards in a second."""
        limits = self.limits

        def ids(unit: IngestUnit) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
            if "id" not in READERS[unit.bitext.format].columns:
                return  # ids are generated from file and line: unique
            for block in read_bitext(unit.bitext, **limits):
                yield unit.index, (row_hash(block.pairs["id"]), block.lines)

        repeats = (
            units
            | "Ids" >> beam.FlatMap(ids).with_output_types(tuple[int, Any])
            | "Repeated ids" >> FindDuplicates(self.rows)
        )
        by_index = units | "By file" >> beam.Map(lambda unit: (unit.index, unit)).with_output_types(
            tuple[int, Any]
        )
        return (
            {"unit": by_index, "repeats": repeats}
            | "Files with repeats" >> beam.CoGroupByKey()
            | "Write" >> beam.ParDo(_Write(self.output, limits))
        )


def run(
    bitexts: Sequence[Bitext],
    output: str,
    key: str,
    *,
    shard_rows: int,
    max_characters: int,
    rows: int,
    arguments: Sequence[str],
) -> Result:
    """Read `bitexts` into `output`; `key` stands for their content and what changes the rows."""
    units = [
        IngestUnit(index=i, key=content_key(key, bitext.name), bitext=bitext)
        for i, bitext in enumerate(bitexts)
    ]
    transform = Ingest(output, shard_rows=shard_rows, max_characters=max_characters, rows=rows)
    return launch("ingest", units, transform, output, arguments, rows_a_part=shard_rows)


class _Write(beam.DoFn):
    def __init__(self, output: str, limits: dict[str, int]):
        self.output, self.limits = output, limits

    def process(self, element: tuple[int, dict[str, Iterable]]) -> Iterator[Receipt]:
        groups = element[1]
        (unit,) = groups["unit"]
        repeats = [rows for rows in groups["repeats"] if len(rows)]
        repeated = np.sort(np.concatenate(repeats)) if repeats else np.empty(0, np.int64)
        done = finished(self.output, unit.name, unit.key)
        yield done or self.write(unit, repeated)

    def write(self, unit: IngestUnit, repeated: np.ndarray) -> Receipt:
        rows = 0
        started = time.monotonic()

        def pieces() -> Iterator[tuple[str, pa.Table, pa.Table]]:
            nonlocal rows
            for number, block in enumerate(read_bitext(unit.bitext, **self.limits)):
                rows += block.rows
                yield f"{unit.name}-{number:05d}", *part(block, repeated)

        return commit(
            self.output,
            unit.name,
            unit.key,
            lambda: rows,
            pieces(),
            started=started,
        )


def part(block: Block, repeated: np.ndarray) -> tuple[pa.Table, pa.Table]:
    """A block's usable pairs, and its rejected rows with those whose row is in `repeated`.

    Args:
        repeated: rows (line numbers) of the file whose id an earlier row has, sorted.
    """
    pairs = pa.Table.from_batches([block.pairs])
    again = np.isin(block.lines, repeated)
    twice = pairs.filter(pa.array(again))
    rejected = pa.table(
        {
            "id": twice["id"],
            "row": pa.array(block.lines[again]),
            "text": pc.binary_join_element_wise(twice["source"], twice["reference"], "\t"),
            "reason": pa.array(["duplicate id"] * twice.num_rows, pa.string()),
        },
        schema=schema.INGEST_REJECTED,
    )
    set_apart = pa.concat_tables(
        [pa.Table.from_batches([block.rejected]).cast(schema.INGEST_REJECTED), rejected]
    )
    return pairs.filter(pa.array(~again)), set_apart.sort_by("row")
