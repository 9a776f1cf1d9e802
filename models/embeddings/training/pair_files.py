"""Files of pairs that a user names, copied once as Parquet in the form that `PairSource` reads.

The copy has row groups of a bounded size, so that large row groups in the user's files take no more
memory, and its texts are known to be valid: every error is found before training.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.models.embeddings.datasets.lines import tab_separated
from paraloom.models.embeddings.options import PairsOptions
from paraloom.models.embeddings.training.data import PairColumns, opened_parquet
from paraloom.models.errors import UserError, reading
from paraloom.models.files import atomic_folder
from paraloom.models.printing import say

_ROWS = 20_000  # in a row group
_MAGIC = b"PAR1"
_BY_NAME = ("reference", "translation")  # a tab-separated file without these has no names

Columns = list[pa.StringArray]  # first, second and negative, of the same rows


def columns_of(sources: Sequence[PairsOptions]) -> PairColumns:
    """The columns of the copies of these sources; a negative only if a source has some."""
    some = any(source.negative is not None for source in sources)
    return PairColumns("first", "second", "negative" if some else None, same_first=True)


def copy_pairs(sources: Sequence[PairsOptions], folder: Path) -> list[Path]:
    """Copy every source to a Parquet file in `folder`, unless that was done before.

    Pairs with an empty side are copied, too; training leaves them out. Their number is printed.
    """
    copies = [folder / f"{number}.parquet" for number in range(len(sources))]
    if not folder.exists():
        schema = pa.schema([(name, pa.string()) for name in columns_of(sources).texts])
        with atomic_folder(folder) as temporary:
            for number, (source, copy) in enumerate(zip(sources, copies, strict=True)):
                with reading(f"embeddings.pairs[{number}].paths"):
                    _copy(source, temporary / copy.name, schema)
    return copies


def _copy(source: PairsOptions, copy: Path, schema: pa.Schema) -> None:
    rows = empty = 0
    with pq.ParquetWriter(copy, schema, compression="zstd") as writer:
        for path in _files(source):
            for columns in _read(source, path):
                without = pc.or_(*(pc.equal(pc.utf8_trim_whitespace(s), "") for s in columns[:2]))
                size = len(without)
                rows += size
                empty += pc.sum(without).as_py() or 0
                columns += [pa.array([""] * size, pa.string())] * (len(schema) - len(columns))
                writer.write_table(pa.table(columns, schema=schema))
    if not rows:
        raise UserError(f"{', '.join(source.paths)}: no pairs (no rows)")
    if empty:
        names = source.paths[0] if len(source.paths) == 1 else f"{len(source.paths)} files"
        say(f"{names}: {empty:,} of {rows:,} pairs have an empty side and are left out")


def _files(source: PairsOptions) -> Iterator[Path]:
    """The files of a source; of a folder, its Parquet files."""
    for path in map(Path, source.paths):
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not found:
            raise UserError(f"{path}: no Parquet files (*.parquet) in this folder")
        yield from found


def _read(source: PairsOptions, path: Path) -> Iterator[Columns]:
    with path.open("rb") as stream:
        is_parquet = stream.read(len(_MAGIC)) == _MAGIC or path.suffix == ".parquet"
    return _read_parquet(source, path) if is_parquet else _read_text(source, path)


def _wanted(source: PairsOptions) -> list[str | int]:
    return [c for c in (source.first, source.second, source.negative) if c is not None]


def _read_parquet(source: PairsOptions, path: Path) -> Iterator[Columns]:
    with opened_parquet(str(path)) as file:
        schema = file.schema_arrow
        fields = [_field(column, schema) for column in _wanted(source)]
        before = 0
        for batch in file.iter_batches(_ROWS, columns=list({field.name for field in fields})):
            columns = [batch.column(field.name).cast(pa.string()).fill_null("") for field in fields]
            for field, column in zip(fields, columns, strict=True):
                with reading(f"column {field.name}, after row {before}"):
                    column.validate(full=True)  # its bytes are UTF-8
            before += len(batch)
            yield columns


def _field(column: str | int, schema: pa.Schema) -> pa.Field:
    """The column of text with this name, or this number from 1."""
    names: list[str] = schema.names
    there = 0 < column <= len(names) if isinstance(column, int) else names.count(column) == 1
    if not there:
        raise UserError(f"no column {column!r}, or several; there are {', '.join(names)}")
    field = schema.field(column - 1 if isinstance(column, int) else column)
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if kind not in (pa.string(), pa.large_string(), pa.string_view(), pa.null()):
        raise UserError(f"column {column!r} holds {kind}, not text")
    return field


def _read_text(source: PairsOptions, path: Path) -> Iterator[Columns]:
    lines = ((number, row) for number, row in tab_separated(path) if row != [""])
    if (first := next(lines, None)) is None:
        return
    positions, has_names = _positions(source, first[1], f"{path}, row {first[0]}")
    rows = lines if has_names else chain([first], lines)
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


def _positions(source: PairsOptions, header: list[str], where: str) -> tuple[list[int], bool]:
    """The positions of the columns, and whether the first line has their names.

    A line on standard error says if columns are read by their number because it has no names.
    """
    columns = _wanted(source)
    names = [column for column in columns if isinstance(column, str)]
    missing = [name for name in names if name not in header]
    if names == missing == list(_BY_NAME):
        say(
            f"{where} does not name the columns reference and translation, so that it is a pair, "
            "and columns 1 and 2 are read"
        )
        columns = [1, 2, *columns[2:]]
    elif missing:
        known = ", ".join(header)
        raise UserError(
            f"{where}: no column {missing[0]!r}, there are {known[:200]} "
            "(a file without names has columns 1, 2 …)"
        )
    found = [c - 1 if isinstance(c, int) else header.index(c) for c in columns]
    return found, bool(names) and not missing
