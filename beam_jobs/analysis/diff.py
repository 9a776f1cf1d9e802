"""Comparison of two sets of part files by rows and values, independent of shards and order.

Parts of equal name and content are skipped. The rows of the others are partitioned by a hash of the
id into files of a bounded number of rows, so that memory does not grow with the corpus.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard, read_shard, read_whole
from paraloom.beam_jobs.transforms.duplicates import row_hash
from paraloom.models.cpu import cores

ROW = "(the row itself)"
"""Used instead of a column name if only one side has a row."""

_ROWS_AT_ONCE = 200_000
_EXAMPLES = 5


@dataclass(slots=True)
class ColumnDiff:
    """The differences in one column."""

    rows: int = 0  # that differ
    # (id, first value, second value), ordered by id; types instead of values if the types of the
    # column differ or only one side has it
    examples: list[tuple[str, Any, Any]] = field(default_factory=list)

    def add(self, ids: pa.Array, first: Sequence[Any], second: Sequence[Any]) -> None:
        """Count the rows of a block, ordered by id; `first` and `second` are its first values."""
        self.rows += len(ids)
        new = list(zip(ids[:_EXAMPLES].to_pylist(), first, second, strict=False))
        self.examples = sorted(self.examples + new, key=lambda e: e[0])[:_EXAMPLES]


def diff_shards(first: Sequence[Shard], second: Sequence[Shard]) -> Mapping[str, ColumnDiff]:
    """The columns in which two sets of part files differ (empty if they are equal).

    Rows are matched by `id` (and `candidate`), and equal ones in the order of their other columns.
    """
    found: dict[str, ColumnDiff] = {}
    others = {shard.name: shard for shard in second}
    paired = [(shard, others.pop(shard.name, None)) for shard in first]
    left: tuple[list[Shard], list[Shard]] = ([], list(others.values()))
    for (shard, other), same in zip(paired, _all_same(paired), strict=True):
        if not same:
            left[0].append(shard)
            if other is not None:
                left[1].append(other)
    rows = max(sum(shard.rows for shard in side) for side in left)
    if rows:
        partitions = 1 + rows // _ROWS_AT_ONCE
        with tempfile.TemporaryDirectory() as folder:
            folders = [Path(folder, name) for name in ("first", "second")]
            for part_folder, side in zip(folders, left, strict=True):
                part_folder.mkdir()
                _spread(side, part_folder, partitions)
            for partition in range(partitions):
                sides = [_gather(part_folder / str(partition)) for part_folder in folders]
                _compare(sides[0], sides[1], found)
    return found


def _all_same(pairs: Sequence[tuple[Shard, Shard | None]]) -> list[bool]:
    """Whether the parts of each pair have the same rows; several are read at once."""
    pool = ThreadPoolExecutor(cores())
    try:
        return list(pool.map(lambda pair: _same(*pair), pairs))
    finally:
        pool.shutdown(cancel_futures=True)


def _same(shard: Shard, other: Shard | None) -> bool:
    """Whether two parts have the same rows, in any order."""
    if other is None:
        return False
    if shard.digest == other.digest:
        for part in {shard, other}:
            read_whole(part)  # verify the checksum
        return True
    if shard.rows != other.rows:
        return False
    tables = [_sorted(read_shard(s)) for s in (shard, other)]
    return bool(tables[0].equals(tables[1]))


def _compare(first: pa.Table | None, second: pa.Table | None, found: dict[str, ColumnDiff]) -> None:
    """Compare the rows of one partition."""
    if first is None or second is None:
        only = first if second is None else second
        if only is not None:
            _alone(_sorted(only), second is None, found)
        return
    first, second = _sorted(first), _sorted(second)
    ids = pa.concat_arrays([schema.row_ids(first), schema.row_ids(second)])
    codes = ids.dictionary_encode().indices.to_numpy().astype(np.int64)
    keys = [_numbered(codes[: len(first)]), _numbered(codes[len(first) :])]
    _, here, there = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    _alone(first.take(np.setdiff1d(np.arange(len(first)), here)), True, found)
    _alone(second.take(np.setdiff1d(np.arange(len(second)), there)), False, found)
    order = np.argsort(here)  # the order of ids again
    _compare_values(first.take(here[order]), second.take(there[order]), found)


def _numbered(codes: np.ndarray) -> np.ndarray:
    """Codes of ids, with equal neighbours made unique by their position among those."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    offset = np.arange(len(codes)) - np.repeat(starts, np.diff(starts, append=len(codes)))
    return (codes << 32) | offset


def _alone(rows: pa.Table, first: bool, found: dict[str, ColumnDiff]) -> None:
    if len(rows):
        there, missing = ["there"] * _EXAMPLES, ["missing"] * _EXAMPLES
        sides = (there, missing) if first else (missing, there)
        found.setdefault(ROW, ColumnDiff()).add(rows["id"], *sides)


def _compare_values(first: pa.Table, second: pa.Table, found: dict[str, ColumnDiff]) -> None:
    """Compare tables with matching rows."""
    if not len(first):
        return
    for name in dict.fromkeys([*first.column_names, *second.column_names]):
        kinds = [
            str(t.schema.field(name).type) if name in t.column_names else "missing"
            for t in (first, second)
        ]
        if kinds[0] != kinds[1]:
            found.setdefault(name, ColumnDiff()).add(first["id"], kinds[:1], kinds[1:])
            continue
        if first[name].equals(second[name]):
            continue
        differ = _differ(first[name], second[name])
        if pc.any(differ).as_py():
            values = (t[name].filter(differ)[:_EXAMPLES].to_pylist() for t in (first, second))
            found.setdefault(name, ColumnDiff()).add(first["id"].filter(differ), *values)


def _differ(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which values differ [n] (bool); two NaN or two null values do not."""
    differ = pc.fill_null(pc.not_equal(first, second), False)
    if pa.types.is_floating(first.type):
        differ = pc.and_(differ, pc.invert(pc.and_(pc.is_nan(first), pc.is_nan(second))))
    return pc.or_(pc.fill_null(differ, False), pc.not_equal(first.is_null(), second.is_null()))


def _sorted(table: pa.Table) -> pa.Table:
    """Sorted by id and candidate, then by the other columns."""
    rest = sorted(set(table.column_names).difference(schema.ROW))
    names = [*(name for name in schema.ROW if name in table.column_names), *rest]
    return table.sort_by([(name, "ascending") for name in names])


def _spread(shards: Sequence[Shard], folder: Path, partitions: int) -> None:
    """Append the rows to one file per partition; only one file is open at a time."""
    for table in _blocks(shards):
        hashes = row_hash(table["id"].combine_chunks())[:, 0]
        partition = (hashes % np.uint64(partitions)).astype(np.int64)
        table = table.take(np.argsort(partition, kind="stable"))
        ends = np.cumsum(np.bincount(partition, minlength=partitions))
        for number, end in enumerate(ends):
            start = ends[number - 1] if number else 0
            if end > start:
                with (
                    (folder / str(number)).open("ab") as stream,
                    pa.ipc.new_stream(stream, table.schema) as sink,
                ):
                    sink.write_table(table.slice(start, end - start))


def _blocks(shards: Sequence[Shard]) -> Iterator[pa.Table]:
    """The shards' rows in blocks of at least `_ROWS_AT_ONCE` rows, except for the last."""
    waiting: list[pa.Table] = []
    for shard in shards:
        waiting.append(read_shard(shard))
        if sum(map(len, waiting)) >= _ROWS_AT_ONCE:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _gather(path: Path) -> pa.Table | None:
    """The rows of a partition's file (one Arrow stream per block); None if there is none."""
    if not path.exists():
        return None
    tables = []
    with path.open("rb") as stream:
        while stream.read(1):
            stream.seek(-1, 1)
            tables.append(pa.ipc.open_stream(stream).read_all())
    return pa.concat_tables(tables)
