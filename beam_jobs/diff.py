"""Compare the rows of two sets of part files, in any order and in any division into shards.

Part files with equal checksums are only verified. The rows of all other part files are partitioned
by a hash of the id, so that memory use does not grow with the corpus.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pydantic import WithJsonSchema

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_shard, read_whole
from paraloom.beam_jobs.transforms.equal_texts import row_hash

ROW = "(the row itself)"  # key in the result for rows that only one set contains

_ROWS_AT_ONCE = 200_000
_EXAMPLES = 5
Largest = Annotated[float, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "null"}]})]
_PARTITION = "(partition)"


@dataclass(slots=True)
class ColumnDiff:
    """The differences in one column."""

    rows: int = 0
    # (id, first value, second value), sorted by id. If types differ, types replace the values.
    examples: list[tuple[str, Any, Any]] = field(default_factory=list)
    largest: Largest = 0.0  # largest difference of floats; inf for other types, NaN and null

    def add(self, ids: pa.Array, first: Sequence[Any], second: Sequence[Any], most: float) -> None:
        """Add the differing rows of a block, sorted by id. `most` is the largest difference."""
        self.rows += len(ids)
        self.largest = max(self.largest, most)
        new = list(zip(ids[:_EXAMPLES].to_pylist(), first, second, strict=False))
        self.examples = sorted(self.examples + new, key=lambda e: e[0])[:_EXAMPLES]


def diff_shards(first: Sequence[Shard], second: Sequence[Shard]) -> Mapping[str, ColumnDiff]:
    """Compare rows with equal ids, and return the differences by column."""
    found: dict[str, ColumnDiff] = {}
    common = Counter(s.digest for s in first) & Counter(s.digest for s in second)
    sides = [_others(side, Counter(common)) for side in (first, second)]
    partitions = 1 + max(sum(shard.rows for shard in side) for side in sides) // _ROWS_AT_ONCE
    with tempfile.TemporaryDirectory() as folder:
        folders = [Path(folder, name) for name in ("first", "second")]
        for place, side in zip(folders, sides, strict=True):
            _spread(side, place, partitions)
        for number in range(partitions):
            places = [place / str(number) for place in folders]
            tables = [ds.dataset(p, format="arrow").to_table() for p in places if p.exists()]
            if len(tables) == 2:
                _compare(tables[0], tables[1], found)
            for table in tables if len(tables) == 1 else ():
                _alone(_sorted(table), places[0].exists(), found)
    return found


def _others(shards: Sequence[Shard], common: Counter[str]) -> list[Shard]:
    """Verify the part files whose digests are in `common`, and return all other part files."""
    equal: list[Shard] = []
    others: list[Shard] = []
    for shard in shards:
        (equal if common[shard.digest] > 0 else others).append(shard)
        common[shard.digest] -= 1
    storage.several(lambda shard: read_whole(shard) and None, equal)
    return others


def _spread(shards: Sequence[Shard], folder: Path, partitions: int) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for shard in shards:
            table = read_shard(shard)
            hashes = row_hash(table["id"].combine_chunks())[:, 0]
            numbers = pa.array((hashes % np.uint64(partitions)).astype(np.int64))
            yield from table.append_column(_PARTITION, numbers).to_batches()

    if shards:
        kinds = read_shard(shards[0]).schema.append(pa.field(_PARTITION, pa.int64()))
        ds.write_dataset(
            pa.RecordBatchReader.from_batches(kinds, batches()),
            folder,
            format="arrow",
            partitioning=[_PARTITION],
            max_partitions=partitions,
        )


def _compare(first: pa.Table, second: pa.Table, found: dict[str, ColumnDiff]) -> None:
    first, second = _sorted(first), _sorted(second)
    ids = pa.concat_arrays([schema.row_ids(first), schema.row_ids(second)])
    codes = ids.dictionary_encode().indices.to_numpy().astype(np.int64)
    one, other = _numbered(codes[: len(first)]), _numbered(codes[len(first) :])
    both = pa.array(np.isin(one, other)), pa.array(np.isin(other, one))
    _alone(first.filter(pc.invert(both[0])), True, found)
    _alone(second.filter(pc.invert(both[1])), False, found)
    _compare_values(first.filter(both[0]), second.filter(both[1]), found)


def _sorted(table: pa.Table) -> pa.Table:
    rest = sorted(set(table.column_names).difference(schema.ROW))
    names = [*(name for name in schema.ROW if name in table.column_names), *rest]
    return table.sort_by([(name, "ascending") for name in names])


def _numbered(codes: np.ndarray) -> np.ndarray:
    """Make codes unique by appending a counter to equal codes, which must be adjacent."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    offset = np.arange(len(codes)) - np.repeat(starts, np.diff(starts, append=len(codes)))
    return (codes << 32) | offset


def _alone(rows: pa.Table, first: bool, found: dict[str, ColumnDiff]) -> None:
    if len(rows):
        there, missing = ["there"] * _EXAMPLES, ["missing"] * _EXAMPLES
        sides = (there, missing) if first else (missing, there)
        found.setdefault(ROW, ColumnDiff()).add(rows["id"], *sides, np.inf)


def _compare_values(first: pa.Table, second: pa.Table, found: dict[str, ColumnDiff]) -> None:
    for name in dict.fromkeys([*first.column_names, *second.column_names]) if len(first) else ():
        kinds = [
            str(table[name].type) if name in table.column_names else "missing"
            for table in (first, second)
        ]
        if kinds[0] != kinds[1]:
            found.setdefault(name, ColumnDiff()).add(first["id"], kinds[:1], kinds[1:], np.inf)
        elif pc.any(differ := _differ(first[name], second[name])).as_py():
            ids, *sides = (of.filter(differ) for of in (first["id"], first[name], second[name]))
            one, other = (side[:_EXAMPLES].to_pylist() for side in sides)
            found.setdefault(name, ColumnDiff()).add(ids, one, other, _largest(*sides))


def _largest(*sides: pa.ChunkedArray) -> float:
    """Return the largest difference between floats, or inf for other types and missing values."""
    if not pa.types.is_floating(sides[0].type):
        return np.inf
    first, second = (side.cast(pa.float64()).to_numpy() for side in sides)
    return float(np.nan_to_num(np.abs(first - second), nan=np.inf, posinf=np.inf).max())


def _differ(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    """Mark values that differ, bool [n]. NaN equals NaN, and null equals null."""
    differ = pc.not_equal(first, second)
    if pa.types.is_floating(first.type):
        differ = pc.and_(differ, pc.invert(pc.and_(pc.is_nan(first), pc.is_nan(second))))
    return pc.or_(pc.fill_null(differ, False), pc.not_equal(first.is_null(), second.is_null()))
