"""Copies of the user's files of pairs, in Parquet with small row groups, which need less memory.
Copying finds errors before the training."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.models.embeddings.datasets.lines import rows_of
from paraloom.models.embeddings.options import PairsOptions
from paraloom.models.embeddings.training.data import PairColumns, opened_parquet
from paraloom.models.errors import UserError, in_one_line, reading
from paraloom.models.files import atomic_folder
from paraloom.models.text.files import flat, is_parquet

_ROWS = 20_000  # per row group
_BY_NAME = ["reference", "translation"]  # default columns


def columns_of(sources: Sequence[PairsOptions]) -> PairColumns:
    """Return the columns of the copies. `negative` is a column only if a group of files has it."""
    some = any(source.negative is not None for source in sources)
    return PairColumns("first", "second", "negative" if some else None, same_first=True)


def copy_pairs(sources: Sequence[PairsOptions], folder: Path) -> list[Path]:
    """Copy each group of files to a Parquet file in `folder`, unless `folder` exists already."""
    copies = [folder / f"{number}.parquet" for number in range(len(sources))]
    if not folder.exists():
        schema = pa.schema([(name, pa.string()) for name in columns_of(sources).texts])
        with atomic_folder(folder) as temporary:
            for number, (source, copy) in enumerate(zip(sources, copies, strict=True)):
                with reading(f"embeddings.pairs[{number}].paths"):
                    _copy(source, temporary / copy.name, schema)
    return copies


def _copy(source: PairsOptions, copy: Path, schema: pa.Schema) -> None:
    wanted = [c for c in (source.first, source.second, source.negative) if c is not None]
    rows = 0
    with pq.ParquetWriter(copy, schema, compression="zstd") as writer:
        for path in _files(source):
            parquet = is_parquet(path) or path.suffix == ".parquet"
            for columns in (_read_parquet if parquet else _read_text)(wanted, path):
                size = len(columns[0])
                columns += [pa.array([""] * size, pa.string())] * (len(schema) - len(columns))
                writer.write_table(pa.table(columns, schema=schema))
                rows += size
    if not rows:
        raise UserError(f"{', '.join(source.paths)}: no rows to train on")


def _files(source: PairsOptions) -> Iterator[Path]:
    for path in map(Path, source.paths):
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not found:
            raise UserError(f"{path}: no Parquet files (*.parquet) in this folder")
        yield from found


def _read_parquet(columns: list[str | int], path: Path) -> Iterator[list[pa.StringArray]]:
    with opened_parquet(str(path)) as file:
        names = flat(file.schema_arrow.empty_table()).column_names
        wanted = [names[at] for at in _positions(columns, names, "the columns are")]
        for batch in file.iter_batches(_ROWS, columns=wanted):
            with in_one_line(f"{path}: {' or '.join(wanted)} cannot be read as text"):
                found = flat(pa.table(batch)).select(wanted).combine_chunks().columns
                yield [of.chunk(0).cast(pa.string()).fill_null("") for of in found]


def _read_text(columns: list[str | int], path: Path) -> Iterator[list[pa.StringArray]]:
    lines = ((number, row) for number, row in rows_of(path) if row != [""])
    if (first := next(lines, None)) is None:
        return
    # If the names are the defaults and the first row has none of them, this row is data, and
    # columns are read by number.
    names = [column for column in columns if isinstance(column, str)]
    if names == _BY_NAME and first[0] and not {*names} & {*first[1]}:
        columns, names = [1, 2, *columns[2:]], []
    with reading(f"{path}, row {first[0]}"):
        unnamed = "use numbers if this row is data. The row contains"
        positions = _positions(columns, first[1], unnamed if first[0] else "the columns are")
    rows = chain([first] if first[0] and not names else [], lines)
    while block := list(islice(rows, _ROWS)):
        found = []
        for number, row in block:
            if len(row) <= max(positions):
                raise UserError(
                    f"{path}, row {number}: {len(row)} tab-separated columns, "
                    f"but column {max(positions) + 1} is needed"
                )
            found.append([row[position] for position in positions])
        yield [pa.array(column, pa.string()) for column in zip(*found, strict=True)]


def _positions(columns: list[str | int], names: list[str], what: str) -> list[int]:
    """Convert column names, or column numbers from 1, to indices from 0.

    In errors, `what` introduces the names.
    """
    found = []
    for column in columns:
        if isinstance(column, str) and column not in names:
            raise UserError(f"no column {column!r}; {what} {', '.join(names)[:200]}")
        number = column if isinstance(column, int) else names.index(column) + 1
        if number > len(names):
            raise UserError(f"no column {number}; number of columns: {len(names)}")
        found.append(number - 1)
    return found
