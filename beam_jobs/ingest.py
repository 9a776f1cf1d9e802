"""Ingest: read bitext files into shards of pairs.

Rows are rejected for these reasons, in this order: invalid content, a repeated id, a failed
condition, a repeated pair, or a near-copy. The last three checks are optional.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from paraloom.beam_jobs import near_duplicates, storage
from paraloom.beam_jobs.bitext import READERS, Bitext, Range, RowBlock, find_ranges, read_bitext
from paraloom.beam_jobs.engine import schema, shards
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.rejections import Limit
from paraloom.beam_jobs.engine.shards import Measurements, Receipt, Saved, content_key
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.near_duplicates import Near, Texts, WithNearDuplicates
from paraloom.beam_jobs.runners.local.runner import ends_when_interrupted
from paraloom.beam_jobs.transforms.conditions import COLUMNS, FAILED, Predicate, reasons
from paraloom.beam_jobs.transforms.duplicates import Hashes, WithDuplicates
from paraloom.beam_jobs.transforms.equal_texts import normalised, row_hash
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.nmt.families.base import Languages
from paraloom.models.text.language_identifier import OwnIdentifier
from paraloom.models.text.tokens import moses_tokens

_REPEATS = "repeats an earlier pair"

_SPANS = "_spans"  # folder for copied ranges of compressed input files
_SHARDS_PER_UNIT = 8  # with more shards, a crash of a worker would lose more work


class IngestMeasurements(Measurements):
    """Measurements of a unit."""

    # Configuration key, such as `input.where` -> rows that need no translation because of this key
    saved: dict[str, Saved] = Field(default_factory=dict)
    # Kind of cleaning -> number of accepted pairs that it changed
    cleaned: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IngestUnit:
    """A range of lines in a bitext. One worker splits the range into shards."""

    index: int
    key: str
    name: str  # name of the receipt; names sort in the order of the input
    file: str  # prefix of the part files' names
    bitext: Bitext
    part: Range
    rows: int | None = None  # unknown in advance, because empty lines may be skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Settings for reading bitexts and for rejecting rows."""

    shard_rows: int  # lines per shard
    max_characters: int  # longest accepted id, source or reference
    where: tuple[Predicate, ...] = ()
    unique_pairs: bool = False  # accept only the first of equal pairs
    near_duplicates: float | None = None  # least Jaccard index of near-copies; None: accept them
    languages: Languages = field(default_factory=Languages)  # for tokenisers; default: English
    identifier: OwnIdentifier | None = None  # identifies languages; None: fastText

    def blocks(self, unit: IngestUnit) -> Iterator[RowBlock]:
        """Yield the rows of a unit, one block per shard."""
        return read_bitext(
            unit.bitext, rows=self.shard_rows, max_characters=self.max_characters, part=unit.part
        )

    def id_hashes(self, unit: IngestUnit) -> Iterator[Hashes]:
        """Yield hashes of each row's id and of the id made from its texts, unless ids are given."""
        for block in self.blocks(unit) if unit.bitext.ids != "given" else ():
            first = row_hash(block.pairs["id"])[:, 0]
            other = first if unit.bitext.ids == "made" else row_hash(block.made)[:, 0]
            yield np.column_stack([first, other]), block.lines

    def failed(self, pairs: pa.RecordBatch) -> np.ndarray:
        """Return a reason for each pair that fails a condition, else "": object [n]."""
        sides = pairs["source"], pairs["reference"]
        return reasons(*sides, self.where, self.languages, pairs, self.identifier)


class Ingest(beam.PTransform):
    """Reads units of bitexts into shards, and returns receipts.

    `rows` is the approximate number of rows. `ids` contains the values of `Bitext.ids` that occur.
    """

    def __init__(
        self, output: str, reading: Reading, rows: int, ids: Collection[str] = ("given", "made")
    ):
        super().__init__()
        self.output, self.reading, self.rows, self.ids = output, reading, rows, {*ids}

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find duplicates across all files, in one pass per kind, and then write the shards."""
        reading, kinds = self.reading, self.ids
        # Only conditions on `input.keep` columns can accept one of several equal pairs and reject
        # another.
        kept = tuple(condition for condition in reading.where if condition.column not in COLUMNS)
        by_kept = replace(reading, where=kept)

        def ids(element: tuple[IngestUnit, np.ndarray]) -> Iterator[Hashes]:
            unit, numbers = element
            for block in reading.blocks(unit):
                yield row_hash(_ids(block, numbers)), block.lines

        def pairs(element: tuple[IngestUnit, np.ndarray, np.ndarray]) -> Iterator[Hashes]:
            unit, _, duplicates = element
            for block in reading.blocks(unit):
                met = by_kept.failed(block.pairs) == ""
                rows = np.flatnonzero(met & ~np.isin(block.lines, duplicates))
                found = block.pairs.take(pa.array(rows))
                yield row_hash(found["source"], found["reference"]), block.lines[rows]

        def texts(element: tuple[Any, ...]) -> Iterator[Texts]:
            unit, numbers, *lines = element
            for block in reading.blocks(unit):
                rows = np.flatnonzero(~np.isin(block.lines, np.concatenate(lines)))
                rows = rows[reading.failed(block.pairs.take(pa.array(rows))) == ""]
                left = block.pairs.take(pa.array(rows))
                sides = normalised(left["source"]), normalised(left["reference"])
                yield Texts(block.lines[rows], *sides, _ids(block, numbers).take(pa.array(rows)))

        # Shared ids get a suffix, unless they are given. Only equal pairs share an id made from
        # texts, so with `unique_pairs`, no two accepted pairs share such an id.
        shared = kinds != {"given"} and not (reading.unique_pairs and kinds == {"made"})
        unsure = "given" in kinds or len(kinds) > 1
        where = self.rows, self.output
        numbered = WithDuplicates(reading.id_hashes if shared else None, *where, shared=True)
        return (
            units
            | "Shared ids" >> numbered
            | "Duplicate ids" >> WithDuplicates(ids if unsure else None, *where)
            | "Repeated pairs" >> WithDuplicates(pairs if reading.unique_pairs else None, *where)
            | "Near-copies" >> WithNearDuplicates(texts, *where, reading.near_duplicates)
            | "Write" >> beam.ParDo(_WriteShards(self.output, reading))
        )


def _ids(block: RowBlock, numbers: np.ndarray) -> pa.StringArray:
    """Return the ids of a block's pairs. Append suffixes to ids that several rows share.

    The first suffix is the id made from the row's texts, unless the row already has this id. Equal
    rows are numbered from 1, and numbers above 1 are the second suffix. `numbers`, int64 [m, 2],
    has each changed row's line and number.
    """
    ids = block.pairs["id"]
    found = numbers[np.isin(numbers[:, 0], block.lines)]
    if not len(found) or block.made is None:
        return ids
    at = np.searchsorted(block.lines, found[:, 0])
    both = (of.take(pa.array(at)).to_pylist() for of in (ids, block.made))
    changed = [
        (id if id == made else f"{id}-{made}") + f"-{number}" * (number > 1)
        for id, made, number in zip(*both, found[:, 1].tolist(), strict=True)
    ]
    mask = np.zeros(len(ids), bool)
    mask[at] = True
    return pc.replace_with_mask(ids, pa.array(mask), pa.array(changed))


def run(
    bitexts: Sequence[Bitext],
    output: str,
    key: str,
    reading: Reading,
    arguments: Sequence[str],
    max_rejected: float = 1.0,
) -> Result:
    """Read `bitexts`, and write shards of pairs into the folder `output`.

    `key` is a digest of the bitexts' content and the settings. Raise a UserError if the bitexts
    have no rows, or if the share of rejected rows is larger than `max_rejected`. Rejections by
    `where`, `unique_pairs` and `near_duplicates` do not count.
    """
    spans = storage.join(output, _SPANS)
    with ends_when_interrupted(sys.stderr):  # `_units` may read large files
        units = _units(bitexts, key, reading, spans)
    limit = Limit(
        share=max_rejected,
        ignored=(f"{FAILED} ", _REPEATS, shards.REPEATS_NEARLY),
        question="is input.format right?",
    )
    rows = sum(unit.part.lines for unit in units)
    transform = Ingest(output, reading, rows, {bitext.ids for bitext in bitexts})

    def done() -> int:
        return reading.shard_rows * len(storage.names(output))

    result = launch("ingest", units, transform, output, arguments, done=done, limit=limit)
    storage.clear(spans)
    if not any(receipt.rows_in for receipt in result.receipts):
        raise UserError(f"{bitexts[0].paths[0]}: no rows")
    return result


def _units(bitexts: Sequence[Bitext], key: str, reading: Reading, spans: str) -> list[IngestUnit]:
    lines = reading.shard_rows * _SHARDS_PER_UNIT
    with ThreadPoolExecutor(cores()) as pool:
        copies = (storage.join(spans, f"{number:05d}") for number in range(len(bitexts)))
        found = list(pool.map(lambda *of: find_ranges(of[0], lines, of[1]), bitexts, copies))
    units: list[IngestUnit] = []
    for number, (bitext, parts) in enumerate(zip(bitexts, found, strict=True)):
        file, whole = f"part-{number:05d}", content_key(key, bitext.name)
        for part in parts:
            one = len(parts) == 1
            name = file if one else f"{file}-{part.before // reading.shard_rows:05d}"
            own = whole if one else content_key(whole, part.before, part.lines)
            units.append(IngestUnit(len(units), own, name, file, bitext, part))
    return units


@dataclass(eq=False)
class _WriteShards(UnitDoFn):
    reading: Reading

    def make(
        self,
        unit: IngestUnit,
        numbers: np.ndarray,
        duplicates: np.ndarray,
        repeats: np.ndarray,
        near: Near | None,
    ) -> Receipt:
        rows, reader = 0, READERS[unit.bitext.format]
        sides = ["source", "reference"] if reader.has_source else ["reference"]
        measured = IngestMeasurements(saved={}, cleaned=dict.fromkeys(unit.bitext.clean, 0))

        def pieces() -> Iterator[tuple[str, pa.Table, pa.Table]]:
            nonlocal rows
            first = unit.part.before // self.reading.shard_rows
            for number, block in enumerate(self.reading.blocks(unit), first):
                rows += block.rows
                ids = _ids(block, numbers)
                pairs = block.pairs.set_column(0, schema.INGEST.field("id"), ids)
                block = replace(block, pairs=pairs)
                why = self._why(block, sides[0], duplicates, repeats, near, measured.saved)
                for kind, changed in block.cleaned.items():
                    measured.cleaned[kind] += int(changed[why == ""].sum())
                parts = _divided(block, why, sides)
                if reader.is_mined:
                    parts = _as_candidates(*parts)
                yield f"{unit.file}-{number:05d}", *parts

        return self.commit(lambda: rows, pieces(), measured)

    def _why(
        self,
        block: RowBlock,
        side: str,
        duplicates: np.ndarray,
        repeats: np.ndarray,
        near: Near | None,
        saved: dict[str, Saved],
    ) -> np.ndarray:
        """Return the reason for rejecting each pair of a block, or "": object [n].

        `duplicates` are lines with repeated ids, and `repeats` are lines with repeated pairs.
        Count in `saved` the rows that the configuration rejects, and their tokens in column `side`.
        """
        languages, why = self.reading.languages, np.full(len(block.lines), "", object)
        language = (languages.source if side == "source" else languages.target) or ENGLISH
        why[np.isin(block.lines, duplicates)] = "duplicate id"

        def reject(key: str, rows: np.ndarray, found: np.ndarray) -> None:
            why[rows] = found
            lost = block.pairs[side].take(pa.array(rows[found != ""]))
            tokens = len(moses_tokens(lost, language).values)
            before = saved.get(key, Saved(rows=0, tokens=0))
            saved[key] = Saved(rows=before.rows + len(lost), tokens=before.tokens + tokens)

        if self.reading.where:
            rows = np.flatnonzero(why == "")
            reject("input.where", rows, self.reading.failed(block.pairs.take(pa.array(rows))))
        if self.reading.unique_pairs:
            here = np.flatnonzero(np.isin(block.lines, repeats) & (why == ""))
            reject("input.unique", here, np.full(len(here), _REPEATS, object))
        if near is not None:
            lines, ids = near
            found = near_duplicates.reasons(ids.filter(np.isin(lines, block.lines)))
            reject("input.near_duplicates", np.flatnonzero(np.isin(block.lines, lines)), found)
        return why


def _divided(block: RowBlock, why: np.ndarray, sides: list[str]) -> tuple[pa.Table, pa.Table]:
    pairs, accepted = pa.Table.from_batches([block.pairs]), why == ""
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
    pairs = pairs.select(["id", *sides, *pairs.column_names[len(schema.INGEST) :]])
    rejected = pa.concat_tables([invalid, rejected]).sort_by("row")
    return pairs.filter(pa.array(accepted)), rejected


def _as_candidates(pairs: pa.Table, rejected: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Move the second sentence of each pair from the column `source` to `translation`."""
    second = pairs["source"]
    pairs = pairs.set_column(1, pairs.schema.field(1), pa.array([""] * len(pairs), pa.string()))
    made = pairs.add_column(3, schema.BACK_TRANSLATE.field("translation"), second)
    named = r"^(no |empty |[^,]* in |)source( longer than .*|)$"
    why = pc.replace_substring_regex(rejected["reason"], named, r"\1translation\2")
    return made, rejected.set_column(3, schema.REASON, why)
