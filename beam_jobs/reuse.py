"""Reuse translations that the same model made with the same options.

The sources of unfinished units are joined with the sources of shards that were translated before.
For the join, all sources are partitioned by hash and written to temporary files (`duplicates`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import (
    EARLIER,
    DamagedError,
    Receipt,
    Shard,
    Unit,
    compacted,
    read_receipt,
    read_shard,
    receipts,
)
from paraloom.beam_jobs.storage import MissingError
from paraloom.beam_jobs.transforms import duplicates
from paraloom.beam_jobs.transforms.duplicates import by_partition, grouped
from paraloom.beam_jobs.transforms.equal_texts import repeated, row_hash
from paraloom.beam_jobs.transforms.translations import Direction
from paraloom.models.printing import say

_WORTH = 100
"""Unchanged shards are searched only if the job has at most this many unchanged rows per new row.

Translating a few new rows takes less time than searching a large corpus for them.
"""

_TEXT = pa.large_string()  # a partition may have more than 2 GiB of text
_FORM = {"translation": _TEXT, "translation_score": pa.float32()}
_FORM |= {"translation_subwords": pa.int16(), "reason": _TEXT}

Block = tuple[int, str, int, int]
"""Rows in a file: (number, path, first byte, end byte). The number is the index of the rows' unit,
which is negative for earlier units, or the number of their partition."""


def earlier(units: Sequence[Unit], output: str, key: str, others: Sequence[str]) -> list[Receipt]:
    """Return the receipts of shards that may have translations for unfinished units.

    The receipts belong to this stage and to the stages in the folders `others`. Receipts of this
    stage that the job may replace are first copied into a file. If the job is killed, its next
    attempt therefore finds the same receipts and makes the same batches.
    """
    keys, before = {unit.key for unit in units}, receipts(output)
    present = keys & {receipt.key for receipt in before}
    if present == keys:
        return []
    ended = storage.exists(compacted(output))
    noted = [of for of in before if of.numbers.get("made_by") and (ended or of.key not in keys)]
    if noted:
        lines = "\n".join(of.at("").model_dump_json(exclude_unset=True) for of in noted).encode()
        path = storage.join(output, EARLIER, f"{storage.digest(lines)[:16]}.jsonl")
        storage.write_bytes(path, lines)
    found = _noted(output)
    unchanged = present & {receipt.key for receipt in found}
    new = sum(unit.rows for unit in units if unit.key not in unchanged)
    if sum(of.rows_in for of in found if of.key in unchanged) > _WORTH * new:
        found = [of for of in found if of.key not in unchanged]
    found += [of for folder in others for of in (*receipts(folder), *_noted(folder))]
    found = [of for of in found if of.numbers.get("made_by") == key]
    if others and not found:
        say(f"{', '.join(others)}: no translations by this model with these options")
    return found


def _noted(folder: str) -> list[Receipt]:
    place, found = storage.join(folder, EARLIER), dict[tuple[str, ...], Receipt]()
    for name in storage.names(place):
        with suppress(MissingError, ValueError):  # sources of lost receipts are translated again
            for line in storage.read_bytes(storage.join(place, name)).splitlines():
                receipt = Receipt.model_validate_json(line).at(folder)
                found[*receipt.paths] = receipt
    return [*found.values()]


class WithKept(beam.PTransform):
    """Finds translations in the shards of `old`. Returns units with blocks for `read_kept`."""

    def __init__(self, old: list[Receipt], new: Sequence[Unit], direction: Direction, output: str):
        super().__init__()
        self.old = [(at, of.shards, of.rejected_shards) for at, of in enumerate(old, -len(old))]
        self.direction, self.output = direction, output
        self.candidates, rows = new[0].candidates, sum(unit.rows for unit in new)
        self.partitions = duplicates.partitions(rows + sum(receipt.rows_in for receipt in old))

    def expand(self, units: beam.PCollection) -> beam.PCollection:
        """Join the sources of units with the sources of earlier shards, in each partition."""
        direction, candidates, output = self.direction, self.candidates, self.output
        prefix, count = duplicates.temporary_prefix(output), self.partitions

        def write(index: int, rows: pa.Table, hashes: np.ndarray) -> Iterator[tuple[int, Block]]:
            data = pa.py_buffer(np.ascontiguousarray(hashes))
            column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(hashes), [None, data])
            rows = rows.append_column("hash", column)
            yield from _write(f"{prefix}-{index}", index, rows, hashes[:, 0] % np.uint64(count))

        def known(element: tuple[int, Any, Any]) -> Iterator[tuple[int, Block]]:
            yield from write(element[0], *translations(*element[1:], direction, candidates))

        def split(unit: Unit) -> Iterator[tuple[int, Block]]:
            done = read_receipt(output, unit.name)
            if not done or done.key != unit.key:
                texts = read_shard(unit.shard, [direction.text])[direction.text].unique()
                yield from write(
                    unit.index, pa.table({"row": np.arange(len(texts))}), row_hash(texts)
                )

        def find(element: tuple[int, Iterable[Block]]) -> Iterator[tuple[int, Block]]:
            partition, blocks = element[0], sorted(element[1])
            old = [block for block in blocks if block[0] < 0]
            if 0 < len(old) < len(blocks):
                found = matched(_read(blocks[len(old) :]), _read(old), candidates)
                of = found["unit"].to_numpy()
                yield from _write(f"{prefix}-found-{partition}", partition, found, of)

        old = units.pipeline | "Old" >> beam.Create(self.old) | beam.Reshuffle()
        old |= "Known" >> beam.FlatMap(known).with_output_types(tuple[int, Any])
        return by_partition(units, split, find, lambda unit, found: (unit, found), old)


def translations(
    accepted: Sequence[Shard], rejected: Sequence[Shard], direction: Direction, candidates: int
) -> tuple[pa.Table, np.ndarray]:
    """Return the translations of an earlier unit, and the hash of each row's source, uint64 [n, 2].

    Each source has `candidates` adjacent rows. Another run may change or remove files. If a file is
    damaged or missing, the table and the hashes are empty.
    """
    number = schema.CANDIDATE.name
    own = ["id", direction.text, number]
    try:
        parts = [read_shard(of, [*own, *direction.added]) for of in accepted]
        parts += [read_shard(of, [*own, "reason"]) for of in rejected]
    except (MissingError, DamagedError):
        parts = []
    form = pa.schema({"id": pa.string(), "text": pa.string(), number: pa.int8(), **_FORM})
    names = {**direction.added, direction.text: "text"}
    parts = [part.rename_columns([names.get(n, n) for n in part.column_names]) for part in parts]
    table = pa.concat_tables([form.empty_table(), *parts], promote_options="permissive")
    codes = table["id"].combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.lexsort((pc.fill_null(table[number], 0).to_numpy(), codes))
    # Do not reuse failures of the engine, because another attempt may succeed.
    failed = pc.fill_null(pc.starts_with(table["reason"], "engine failed"), False).to_numpy()
    usable = np.bincount(codes) == candidates
    usable[codes[failed]] = False
    table = table.take(pa.array(order[usable[codes[order]]]))
    hashes = row_hash(table["text"].combine_chunks())[::candidates]
    rows = np.arange(len(hashes))
    once = rows[~repeated(hashes, np.zeros(len(hashes)), rows)]
    table = table.select([*_FORM]).take(pa.array(spread(once, candidates)))
    return table, np.repeat(hashes[once], candidates, axis=0)


def matched(sources: pa.Table, known: pa.Table, candidates: int) -> pa.Table:
    """For each source that `known` contains, return the translations of its first occurrence."""
    hashes = known["hash"].take(pa.array(np.arange(0, len(known), candidates)))
    at = pc.index_in(sources["hash"], value_set=hashes)
    found = known.select([*_FORM]).take(pa.array(spread(at.drop_null().to_numpy(), candidates)))
    places = sources.take(pa.array(np.repeat(np.flatnonzero(at.is_valid()), candidates)))
    return found.append_column("unit", places["unit"]).append_column("row", places["row"])


def read_kept(blocks: Sequence[Block], candidates: int) -> tuple[np.ndarray, pa.Table]:
    """Read the translations in `blocks`.

    Return the indices of the translated texts among the unit's distinct texts, int64 [n], and the
    table of translations.
    """
    if not blocks:
        return np.empty(0, np.int64), pa.schema(_FORM).empty_table()
    found = _read(blocks)
    return found["row"].to_numpy()[::candidates], found.select([*_FORM])


def spread(rows: np.ndarray, candidates: int) -> np.ndarray:
    """Replace each index of a source by the indices of its `candidates` adjacent rows, int64."""
    return np.asarray(rows[:, None].astype(np.int64) * candidates + np.arange(candidates)).ravel()


def _write(path: str, index: int, table: pa.Table, keys: np.ndarray) -> Iterator[tuple[int, Block]]:
    """Write the rows into one file, grouped by key. Yield (key, block) for each key."""
    if not len(table):
        return
    options, end = pa.ipc.IpcWriteOptions(compression="lz4"), 0
    with storage.writing(path) as stream:
        for key, rows in grouped(keys, np.arange(len(table))):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                writer.write_table(table.take(pa.array(rows)))
            start, end = end, end + stream.write(sink.getvalue())
            yield key, (index, path, start, end)


def _read(blocks: Sequence[Block]) -> pa.Table:
    def read(block: Block) -> pa.Table:
        index, path, start, end = block
        table = pa.ipc.open_stream(storage.read_bytes(path, start, end)).read_all()
        return table.append_column("unit", pa.array(np.full(len(table), index)))

    return pa.concat_tables(storage.several(read, blocks)).combine_chunks()
