"""Ingest: reads bitext files into shards of pairs; invalid rows are rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_jobs.io import schema
from beam_jobs.io.bitext import READERS, Bitext, Block, read_bitext
from beam_jobs.io.shards import Receipt, content_key
from beam_jobs.runners.launch import Result, launch
from beam_jobs.transforms.duplicates import Hashes, WithDuplicates, row_hash
from beam_jobs.transforms.unit_dofn import UnitDoFn

VERSION = 1
"""Bump when the job's rows change for the same input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestUnit:
    """One bitext (a file, or a Moses pair of files), which one worker splits into shards."""

    index: int
    key: str
    bitext: Bitext
    rows: int | None = None  # unknown before reading

    @property
    def name(self) -> str:
        """The prefix of its part files; numbered, so that they sort in the order of the input."""
        return f"part-{self.index:05d}"


class Ingest(beam.PTransform):
    """Bitexts in, receipts out. Of rows with the same id, only the first is accepted.

    Args:
        shard_rows: lines per shard.
        max_characters: rows with a longer id, source or reference are rejected.
        rows: approximate number of rows, for the search for duplicate ids.
    """

    def __init__(self, output: str, *, shard_rows: int, max_characters: int, rows: int):
        super().__init__()
        self.output, self.rows = output, rows
        self.limits = {"rows": shard_rows, "max_characters": max_characters}

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find duplicate ids over all files in a first pass, write the shards in a second."""
        limits = self.limits

        def ids(unit: IngestUnit) -> Iterator[Hashes]:
            if "id" not in READERS[unit.bitext.format].columns:
                return  # ids are generated from file and line: unique
            for block in read_bitext(unit.bitext, **limits):
                yield row_hash(block.pairs["id"]), block.lines

        joined = units | "Duplicate ids" >> WithDuplicates(ids, self.rows)
        return joined | "Write" >> beam.ParDo(_Write(self.output, limits))


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
    """Read `bitexts` into `output`; `key` is of their content and of the settings of the stage."""
    units = [
        IngestUnit(index=i, key=content_key(key, bitext.name), bitext=bitext)
        for i, bitext in enumerate(bitexts)
    ]
    transform = Ingest(output, shard_rows=shard_rows, max_characters=max_characters, rows=rows)
    return launch("ingest", units, transform, output, arguments, rows_per_part=shard_rows)


@dataclass(eq=False)
class _Write(UnitDoFn):
    limits: dict[str, int]

    def make(self, unit: IngestUnit, duplicates: np.ndarray) -> Receipt:
        rows = 0

        def pieces() -> Iterator[tuple[str, pa.Table, pa.Table]]:
            nonlocal rows
            for number, block in enumerate(read_bitext(unit.bitext, **self.limits)):
                rows += block.rows
                yield f"{unit.name}-{number:05d}", *part(block, duplicates)

        return self.commit(unit, lambda: rows, pieces())


def part(block: Block, duplicates: np.ndarray) -> tuple[pa.Table, pa.Table]:
    """A block's accepted pairs and its rejected rows; `duplicates` are lines with an earlier id."""
    pairs = pa.Table.from_batches([block.pairs])
    again = np.isin(block.lines, duplicates)
    twice = pairs.filter(pa.array(again))
    repeats = pa.table(
        {
            "id": twice["id"],
            "row": pa.array(block.lines[again]),
            "text": pc.binary_join_element_wise(twice["source"], twice["reference"], "\t"),
            "reason": pa.array(["duplicate id"] * twice.num_rows, pa.string()),
        },
        schema=schema.INGEST_REJECTED,
    )
    invalid = pa.Table.from_batches([block.rejected]).cast(schema.INGEST_REJECTED)
    return pairs.filter(pa.array(~again)), pa.concat_tables([invalid, repeats]).sort_by("row")
