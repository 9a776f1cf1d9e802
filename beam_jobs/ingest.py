"""Ingest: reads bitext files into shards of pairs.

Rejected are, in this order: invalid rows, rows with the id of an earlier one, rows that fail a
condition, and, if pairs are to be unique, rows that repeat an earlier pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.bitext import READERS, Bitext, Block, Range, find_ranges, read_bitext
from paraloom.beam_jobs.io.shards import (
    REPEATS,
    Measurements,
    Receipt,
    Saved,
    content_key,
    read_receipt,
)
from paraloom.beam_jobs.runners.launch import Result, launch
from paraloom.beam_jobs.runners.rejections import Limit
from paraloom.beam_jobs.transforms.conditions import FAILED, reasons
from paraloom.beam_jobs.transforms.duplicates import Hashes, WithDuplicates, row_hash
from paraloom.beam_jobs.transforms.predicates import Predicate
from paraloom.beam_jobs.transforms.repeated_pairs import Repeats, WithRepeats
from paraloom.beam_jobs.transforms.unit_dofn import UnitDoFn
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.nmt.families.base import Languages
from paraloom.models.text.tokens import moses_tokens

VERSION = 1
"""Bump when the job's rows change for the same input."""

_SHARDS_PER_UNIT = 8
"""What is lost with a worker; a file with fewer is one unit."""


@dataclass(frozen=True, slots=True)
class IngestUnit:
    """Lines of a bitext (a file, or a Moses pair of files) that one worker splits into shards.

    Attributes:
        name: of its receipt; units sort in the order of the input.
        file: how the names of its part files begin; numbered, so that they sort, too.
    """

    index: int
    key: str
    name: str
    file: str
    bitext: Bitext
    part: Range
    rows: int | None = None  # empty lines may be none


class Ingest(beam.PTransform):
    """Bitexts in, receipts out. Of rows with the same id, only the first is accepted.

    Args:
        shard_rows: lines per shard.
        max_characters: rows with a longer id, source or reference are rejected.
        rows: approximate number of rows, for the search for duplicates.
        where: conditions on a pair.
        unique_pairs: accept only the first of equal pairs.
        languages: of the two sides, for their tokens; None: both English.
    """

    def __init__(
        self,
        output: str,
        *,
        shard_rows: int,
        max_characters: int,
        rows: int,
        where: Sequence[Predicate] = (),
        unique_pairs: bool = False,
        languages: Languages | None = None,
    ):
        super().__init__()
        self.output, self.rows, self.languages = output, rows, languages
        self.where, self.unique_pairs = tuple(where), unique_pairs
        self.limits = {"rows": shard_rows, "max_characters": max_characters}

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find duplicates over all files in a pass for ids and one for pairs, write in a last."""
        limits = self.limits

        def ids(unit: IngestUnit) -> Iterator[Hashes]:
            if "id" not in READERS[unit.bitext.format].columns:
                return  # ids are generated from file and line: unique
            for block in read_bitext(unit.bitext, **limits, part=unit.part):
                yield row_hash(block.pairs["id"]), block.lines

        def pairs(
            element: tuple[IngestUnit, np.ndarray],
        ) -> Iterator[tuple[Hashes, pa.Array]]:
            unit, duplicates = element
            for block in read_bitext(unit.bitext, **limits, part=unit.part):
                rows = np.flatnonzero(~np.isin(block.lines, duplicates))
                found = block.pairs.take(pa.array(rows))
                hashed = row_hash(found["source"], found["reference"])
                yield (hashed, block.lines[rows]), found["id"]

        joined = units | "Duplicate ids" >> WithDuplicates(ids, self.rows, self.output)
        if self.unique_pairs:
            joined = joined | "Repeated pairs" >> WithRepeats(pairs, self.rows)
        return joined | "Write" >> beam.ParDo(
            _Write(self.output, limits, self.where, self.languages)
        )


def run(
    bitexts: Sequence[Bitext],
    output: str,
    key: str,
    *,
    shard_rows: int,
    max_characters: int,
    arguments: Sequence[str],
    where: Sequence[Predicate] = (),
    unique_pairs: bool = False,
    languages: Languages | None = None,
    max_rejected: float = 1.0,
) -> Result:
    """Read `bitexts` into `output`; `key` is of their content and of the settings of the stage.

    This process reads them once before, for the ranges that workers read.

    Args:
        where, unique_pairs, languages: see `Ingest`.
        max_rejected: largest share of rows that may be rejected; the rows that `where` and
            `unique_pairs` reject do not count.
    """
    units = _units(bitexts, output, key, shard_rows, max_characters)
    limit = Limit(
        share=max_rejected, ignored=(f"{FAILED} ", REPEATS), question="is input.format right?"
    )
    transform = Ingest(
        output,
        shard_rows=shard_rows,
        max_characters=max_characters,
        rows=sum(unit.part.lines for unit in units),
        where=where,
        unique_pairs=unique_pairs,
        languages=languages,
    )
    result = launch(
        "ingest", units, transform, output, arguments, rows_per_part=shard_rows, limit=limit
    )
    rows: Counter[str] = Counter()
    for unit, receipt in zip(units, result.receipts, strict=True):
        rows[unit.bitext.paths[0]] += receipt.rows_in
    for path in (path for path, found in rows.items() if not found):
        raise UserError(f"{path}: no rows")
    return result


def _units(
    bitexts: Sequence[Bitext], output: str, key: str, shard_rows: int, max_characters: int
) -> list[IngestUnit]:
    """The units of all bitexts; one that is finished as a whole, as in earlier versions, is one."""
    files = [f"part-{number:05d}" for number in range(len(bitexts))]
    keys = [content_key(key, bitext.name) for bitext in bitexts]

    def ranges(bitext: Bitext, file: str, key: str) -> list[Range]:
        whole = (before := read_receipt(output, file)) is not None and before.key == key
        lines = None if whole else shard_rows * _SHARDS_PER_UNIT
        return find_ranges(bitext, lines, max_characters)

    pool = ThreadPoolExecutor(cores())
    try:
        found = list(pool.map(ranges, bitexts, files, keys))
    finally:
        pool.shutdown(cancel_futures=True)
    units: list[IngestUnit] = []
    for bitext, file, own, parts in zip(bitexts, files, keys, found, strict=True):
        for part in parts:
            name = file if len(parts) == 1 else f"{file}-{part.before // shard_rows:05d}"
            key = own if len(parts) == 1 else content_key(own, part.before, part.lines)
            units.append(IngestUnit(len(units), key, name, file, bitext, part))
    return units


@dataclass(eq=False)
class _Write(UnitDoFn):
    limits: dict[str, int]
    where: tuple[Predicate, ...]
    languages: Languages | None = None

    def make(
        self, unit: IngestUnit, duplicates: np.ndarray, repeats: Repeats | None = None
    ) -> Receipt:
        rows = 0
        saved: dict[str, Saved] = {}
        if self.where:
            saved["input.where"] = Saved(rows=0, tokens=0)
        if repeats is not None:
            saved["input.unique"] = Saved(rows=0, tokens=0)

        def pieces() -> Iterator[tuple[str, pa.Table, pa.Table]]:
            nonlocal rows
            first = unit.part.before // self.limits["rows"]
            blocks = read_bitext(unit.bitext, **self.limits, part=unit.part)
            for number, block in enumerate(blocks, first):
                rows += block.rows
                name = f"{unit.file}-{number:05d}"
                has_source = READERS[unit.bitext.format].has_source
                checks = duplicates, self.where, repeats, saved
                yield name, *part(block, *checks, has_source, self.languages)

        def measured() -> Measurements:
            return Measurements(saved=saved) if saved else Measurements()

        return self.commit(unit, lambda: rows, pieces(), measured)


def part(
    block: Block,
    duplicates: np.ndarray,
    where: Sequence[Predicate] = (),
    repeats: Repeats | None = None,
    saved: dict[str, Saved] | None = None,
    has_source: bool = True,
    languages: Languages | None = None,
) -> tuple[pa.Table, pa.Table]:
    """A block's accepted pairs and its rejected rows.

    Args:
        duplicates: lines with an earlier id.
        saved: gets the rejected rows of `where` and `repeats` added, by key of the configuration.
        has_source: whether the rows are pairs; those of plain text get no column for the source.
        languages: see `Ingest`.
    """
    sides = ["source", "reference"] if has_source else ["reference"]
    languages = languages or Languages()
    language = (languages.source if has_source else languages.target) or ENGLISH
    pairs = pa.Table.from_batches([block.pairs])
    why = np.full(len(pairs), "", object)
    why[np.isin(block.lines, duplicates)] = "duplicate id"

    def reject(key: str, rows: np.ndarray, found: np.ndarray) -> None:
        why[rows] = found
        if saved is not None:
            lost = pairs[sides[0]].take(pa.array(rows[found != ""]))
            tokens = len(moses_tokens(lost, language).values)
            before, fails = saved[key], int(np.count_nonzero(found != ""))
            saved[key] = Saved(rows=before.rows + fails, tokens=before.tokens + tokens)

    if where:
        rows = np.flatnonzero(why == "")
        left = block.pairs.take(pa.array(rows))
        failed = reasons(left["source"], left["reference"], where, languages)
        reject("input.where", rows, failed)
    if repeats is not None:
        here = np.flatnonzero(np.isin(block.lines, repeats.rows) & (why == ""))
        at = pa.array(np.searchsorted(repeats.rows, block.lines[here]))
        first = np.array([f"{REPEATS} {id}" for id in repeats.first.take(at).to_pylist()], object)
        reject("input.unique", here, first)
    accepted = why == ""
    apart = pairs.filter(pa.array(~accepted))
    rejected = pa.table(
        {
            "id": apart["id"],
            "row": pa.array(block.lines[~accepted]),
            "text": pc.binary_join_element_wise(*(apart[side] for side in sides), "\t"),
            "reason": pa.array(why[~accepted], pa.string()),
        },
        schema=schema.INGEST_REJECTED,
    )
    invalid = pa.Table.from_batches([block.rejected]).cast(schema.INGEST_REJECTED)
    pairs = pairs.select(["id", *sides])
    return pairs.filter(pa.array(accepted)), pa.concat_tables([invalid, rejected]).sort_by("row")
