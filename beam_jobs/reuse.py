"""Translations that are kept: a source that the same model has translated is not translated again.

When shards have to be made and finished ones have translations by the same model and options, both
are divided by the hashes of their sources, and joined in each part. Every earlier shard is read
once, whatever the order of rows. Texts go through files, as in `duplicates`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import (
    ALL,
    EARLIER,
    HASHES,
    RECEIPTS,
    DamagedError,
    Receipt,
    Unit,
    read_receipt,
    read_shard,
)
from paraloom.beam_jobs.storage import MissingError
from paraloom.beam_jobs.transforms.duplicates import by_partition, grouped, partitions
from paraloom.beam_jobs.transforms.equal_texts import repeated, row_hash
from paraloom.beam_jobs.transforms.translations import Direction

_WORTH = 100
"""Rows of unchanged shards that are read at most for each row to make: a few lines after a large
corpus are sooner translated than looked for."""

_FAILED = "engine failed"  # another attempt may succeed

_TEXT = pa.large_string()  # a partition may hold more than 2 GiB
_TRANSLATIONS = pa.schema(
    [
        ("translation", _TEXT),
        ("translation_score", pa.float32()),
        ("translation_subwords", pa.int16()),
        ("reason", _TEXT),
    ]
)

Block = tuple[int, str, int, int]
"""Location of rows: index of the unit or earlier shard, file, first byte, end."""

Hashed = tuple[pa.Table, np.ndarray]
"""Rows with the hashes of their sources in a column, and the same hashes, uint64 [n, 2]."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A finished shard with translations, beside the units of a job."""

    index: int
    receipt: Receipt


def set_aside(folder: str, before: Sequence[Receipt], units: Sequence[Unit]) -> list[Receipt]:
    """Note the receipts with translations that a job will outdate, and all of a stage that has
    ended; return all that were noted since, except what costs more than it saves.

    Their part files stay until the stage ends again. A job that was killed finds the same receipts
    when it resumes, and makes the same batches.
    """
    keys = {unit.key for unit in units}
    ended = storage.exists(storage.join(folder, RECEIPTS, ALL))
    noted = [of for of in before if of.numbers.get("made_by") and (ended or of.key not in keys)]
    if noted:
        lines = "\n".join(of.at("").model_dump_json(exclude_unset=True) for of in noted).encode()
        path = storage.join(folder, EARLIER, f"{storage.digest(lines)[:16]}.jsonl")
        storage.write_bytes(path, lines)
    found = earlier(folder)
    unchanged = {of.key for of in found} & {of.key for of in before} & keys
    new = sum(unit.rows for unit in units if unit.key not in unchanged)
    if sum(of.rows_in for of in found if of.key in unchanged) > _WORTH * new:
        return [of for of in found if of.key not in unchanged]
    return found


def earlier(folder: str) -> list[Receipt]:
    """The receipts that `set_aside` has noted in a stage's folder."""
    place, found = storage.join(folder, EARLIER), dict[tuple[str, ...], Receipt]()
    for name in storage.names(place):
        with suppress(MissingError, ValueError):  # damaged: then they are translated again
            for line in storage.read_bytes(storage.join(place, name)).splitlines():
                receipt = Receipt.model_validate_json(line).at(folder)
                found[*receipt.paths] = receipt
    return [*found.values()]


class WithKept(beam.PTransform):
    """Finds kept translations: units in; (unit, blocks for `read_kept`) out.

    Args:
        receipts: of earlier shards, by the model and the options of the units' translations.
        units: all units.
        output: the stage's folder; `remove_orphans` removes the files.
        distinct: whether rows are those of a shard's distinct texts.
    """

    def __init__(
        self,
        receipts: Sequence[Receipt],
        units: Sequence[Unit],
        direction: Direction,
        output: str,
        *,
        distinct: bool,
    ):
        super().__init__()
        self.direction, self.distinct, self.candidates = direction, distinct, units[0].candidates
        self.earlier = [Earlier(len(units) + at, receipt) for at, receipt in enumerate(receipts)]
        rows = sum(unit.rows for unit in units) + sum(receipt.rows_in for receipt in receipts)
        self.partitions = partitions(rows)
        # Unique to this job, as a worker of a killed job may still be writing.
        self.output, self.prefix = output, storage.join(output, HASHES, secrets.token_hex(4))

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Find the sources of units in earlier shards, per partition."""
        direction, candidates, distinct = self.direction, self.candidates, self.distinct
        count, prefix, output = self.partitions, self.prefix, self.output
        first = self.earlier[0].index

        def split(element: Unit | Earlier) -> Iterator[tuple[int, Block]]:
            if isinstance(element, Earlier):
                table, hashes = translations(element.receipt, direction, candidates)
            else:
                done = read_receipt(output, element.name)
                if done and done.key == element.key:
                    return
                texts = read_shard(element.shard, [direction.text])[direction.text]
                texts = texts.unique() if distinct else texts.combine_chunks()
                table, hashes = sources(texts, element.index)
            at = hashes[:, 0] % np.uint64(count)
            yield from _write(f"{prefix}-{element.index}", element.index, table, at)

        def find(element: tuple[int, Iterable[Block]]) -> Iterator[tuple[int, Block]]:
            partition, blocks = element[0], sorted(element[1])
            new = [block for block in blocks if block[0] < first]
            if 0 < len(new) < len(blocks):
                found = matched(_read(new), _read(blocks[len(new) :]), candidates)
                of = found["unit"].to_numpy()
                yield from _write(f"{prefix}-found-{partition}", partition, found, of)

        more = units.pipeline | "Earlier" >> beam.Create(self.earlier) | beam.Reshuffle()
        both = (units, more) | beam.Flatten()
        joined = by_partition(both, split, find, lambda element, found: (element, found))
        return joined | "Units" >> beam.Filter(lambda of: isinstance(of[0], Unit))


def sources(texts: pa.Array, unit: int) -> Hashed:
    """The rows of a unit that need translations."""
    hashes, rows = row_hash(texts), np.arange(len(texts))
    columns = {"hash": _binary(hashes), "unit": np.full(len(rows), unit), "row": rows}
    return pa.table(columns), hashes


def translations(receipt: Receipt, direction: Direction, candidates: int) -> Hashed:
    """The translations of an earlier shard, `candidates` neighbouring rows for each distinct
    source; none if a file was changed or removed, as another run may do meanwhile."""
    number = schema.CANDIDATE.name
    own = ["id", direction.text, number]
    try:
        parts = [read_shard(of, [*own, *direction.added]) for of in receipt.shards]
        parts += [read_shard(of, [*own, "reason"]) for of in receipt.rejected_shards]
    except (MissingError, DamagedError):
        parts = []
    form = pa.schema([*dict.fromkeys(("id", "text"), pa.string()).items(), (number, pa.int8())])
    form = pa.schema([*form, *_TRANSLATIONS])
    names = {**direction.added, direction.text: "text"}
    parts = [form.empty_table()] + [
        part.rename_columns([names.get(name, name) for name in part.column_names]) for part in parts
    ]
    table = pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    codes = table["id"].combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.lexsort((pc.fill_null(table[number], 0).to_numpy(), codes))
    failed = pc.fill_null(pc.starts_with(table["reason"], _FAILED), False).to_numpy()
    usable = np.bincount(codes) == candidates
    usable[codes[failed]] = False
    table = table.take(pa.array(order[usable[codes[order]]]))
    hashes = row_hash(table["text"].combine_chunks())[::candidates]
    rows = np.arange(len(hashes))
    once = rows[~repeated(hashes, np.zeros(len(hashes)), rows)]
    table = table.select(_TRANSLATIONS.names).take(pa.array(spread(once, candidates)))
    hashes = np.repeat(hashes[once], candidates, axis=0)
    return table.append_column("hash", _binary(hashes)), hashes


def matched(sources: pa.Table, known: pa.Table, candidates: int) -> pa.Table:
    """The translations, of several in `known` the first, for each source that has some."""
    hashes = known["hash"].take(pa.array(np.arange(0, len(known), candidates)))
    at = pc.index_in(sources["hash"], value_set=hashes)
    rows = np.flatnonzero(at.is_valid().to_numpy())
    places = sources.select(["unit", "row"]).take(pa.array(np.repeat(rows, candidates)))
    found = known.take(pa.array(spread(at.drop_null().to_numpy(), candidates)))
    for name in places.column_names:
        found = found.append_column(name, places[name])
    return found.drop_columns(["hash"])


def read_kept(blocks: Sequence[Block], candidates: int) -> tuple[np.ndarray, pa.Table]:
    """The rows of a unit that have kept translations, int64 [n], and their translations."""
    if not blocks:
        return np.empty(0, np.int64), _TRANSLATIONS.empty_table()
    found = _read(blocks)
    return found["row"].to_numpy()[::candidates], found.select(_TRANSLATIONS.names)


def spread(rows: np.ndarray, candidates: int) -> np.ndarray:
    """Indices of the candidates of rows, int64, with `candidates` neighbours for each row."""
    return np.asarray(rows[:, None].astype(np.int64) * candidates + np.arange(candidates)).ravel()


def _binary(hashes: np.ndarray) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(hashes))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(hashes), [None, data])


def _write(path: str, index: int, table: pa.Table, keys: np.ndarray) -> Iterator[tuple[int, Block]]:
    """Write rows into one file, together if they have the same key; yield each key's place."""
    if not len(table):
        return
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with storage.writing(path) as stream:
        start = 0
        for key, rows in grouped(keys, np.arange(len(table))):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                writer.write_table(table.take(pa.array(rows)))
            end = start + stream.write(sink.getvalue())
            yield key, (index, path, start, end)
            start = end


def _read(blocks: Iterable[Block]) -> pa.Table:
    """Read the rows of several places, in order."""

    def read(block: Block) -> pa.Table:
        _, path, start, end = block
        return pa.ipc.open_stream(storage.read_bytes(path, start, end)).read_all()

    return pa.concat_tables(storage.several(read, blocks)).combine_chunks()
