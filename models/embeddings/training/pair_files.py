"""Files of pairs that a user names, copied once as Parquet in the form that `Shards` reads.

The copy has row groups of a bounded size, so that the memory of training does not depend on that of
the user's files, and its texts are known to be valid: every error is found before training.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.models.embeddings.datasets.lines import tab_separated
from paraloom.models.embeddings.tasks.options import PairsOptions
from paraloom.models.embeddings.training.data import PairColumns, opened_parquet
from paraloom.models.errors import UserError
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
                try:
                    _copy(source, temporary / copy.name, schema)
                except UserError as error:
                    raise UserError(f"embeddings.pairs[{number}].paths: {error}") from error
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
    try:
        with path.open("rb") as stream:
            is_parquet = stream.read(len(_MAGIC)) == _MAGIC or path.suffix == ".parquet"
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    return _read_parquet(source, path) if is_parquet else _read_text(source, path)


def _wanted(source: PairsOptions) -> list[str | int]:
    return [c for c in (source.first, source.second, source.negative) if c is not None]


def _read_parquet(source: PairsOptions, path: Path) -> Iterator[Columns]:
    with opened_parquet(str(path)) as file:
        schema = file.schema_arrow
        names = [_parquet_name(column, schema, path) for column in _wanted(source)]
        before = 0
        for batch in file.iter_batches(_ROWS, columns=list(dict.fromkeys(names))):
            columns = [batch.column(name).cast(pa.string()).fill_null("") for name in names]
            for name, column in zip(names, columns, strict=True):
                _check_utf8(column, f"{path}, column {name}", before)
            before += len(batch)
            yield columns


def _parquet_name(column: str | int, schema: pa.Schema, path: Path) -> str:
    names: list[str] = schema.names
    there = 0 < column <= len(names) if isinstance(column, int) else column in names
    if not there:
        raise UserError(f"{path}: no column {column!r}, there are {', '.join(names)}")
    name = names[column - 1] if isinstance(column, int) else column
    if names.count(name) > 1:
        raise UserError(f"{path}: {names.count(name)} columns have the name {name!r}")
    kind = schema.field(name).type
    text = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_text = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_null,  # no value is set
    )
    if not any(test(text) for test in is_text):
        raise UserError(f"{path}: column {name!r} holds {kind}, not text")
    return name


def _check_utf8(column: pa.StringArray, place: str, before: int) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        for row, value in enumerate(column.cast(pa.binary()).to_pylist(), before + 1):
            try:
                value.decode()
            except UnicodeDecodeError as error:
                raise UserError(f"{place}, row {row}: not UTF-8") from error
        raise


def _read_text(source: PairsOptions, path: Path) -> Iterator[Columns]:
    positions: list[int] = []
    needed = 0
    block: list[list[str]] = []
    for number, row in tab_separated(path):
        if not positions:
            if row == [""]:
                continue
            positions, has_names = _positions(source, row, path, number)
            needed = max(positions) + 1
            if has_names:
                continue
        if len(row) < needed:
            if row != [""]:
                raise UserError(
                    f"{path}, row {number}: {len(row)} tab-separated columns, "
                    f"but column {needed} is needed"
                )
            row = [""] * needed
        block.append([row[position] for position in positions])
        if len(block) == _ROWS:
            yield _columns(block)
            block = []
    if block:
        yield _columns(block)


def _columns(rows: list[list[str]]) -> Columns:
    return [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]


def _positions(
    source: PairsOptions, header: list[str], path: Path, row: int
) -> tuple[list[int], bool]:
    """The positions of the columns, and whether the first line, of number `row`, has their names.

    A line on standard error says if columns are read by their number because it has no names.
    """
    columns = _wanted(source)
    names = [column for column in columns if isinstance(column, str)]
    missing = [name for name in names if name not in header]
    if names == missing == list(_BY_NAME):
        say(
            f"{path}: row {row} does not name the columns reference and translation, so that it is "
            "a pair, and columns 1 and 2 are read"
        )
        numbers = {"reference": 1, "translation": 2}
        columns = [
            numbers.get(column, column) if isinstance(column, str) else column for column in columns
        ]
    elif missing:
        known = ", ".join(header)
        raise UserError(
            f"{path}, row {row}: no column {missing[0]!r}, there are {known[:200]} "
            "(a file without names has columns 1, 2 …)"
        )
    found = [c - 1 if isinstance(c, int) else header.index(c) for c in columns]
    return found, bool(names) and not missing
