"""The bytes of part files: Parquet, of one row group or none.

Later stages only add columns. `extended` copies those that a part file has as they are compressed,
which is several times faster than writing them again, and gives the same bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.io.thrift import BINARY, LIST, STRUCT, Items, Struct, dumps, loads

_MAGIC = b"PAR1"

# A part file of a few kB can hold any number of long texts. One is refused that becomes larger than
# `_LARGE` and `_RATIO` times its size: zstd makes texts three or four times smaller.
_LARGE = 1 << 30  # bytes
_RATIO = 1000
_PLAIN = {"PLAIN", "RLE"}  # the encodings of `encode`: a value is stored once for each row
_ROW = 8  # bytes: even of a null there is an offset or a number

# Numbers of fields in Parquet's Thrift definition.
_SCHEMA, _ROW_GROUPS, _METADATA, _ORDERS = 2, 4, 5, 7  # FileMetaData
_CHILDREN = 5  # SchemaElement
_COLUMNS, _SIZE, _COMPRESSED_SIZE = 1, 2, 6  # RowGroup
_OFFSET, _COLUMN = 2, 3  # ColumnChunk
_PAGES = (9, 10, 11, 14)  # ColumnMetaData: offsets of data, index, dictionary and Bloom filter
_KEY, _VALUE = 1, 2  # KeyValue


class PartFile(NamedTuple):
    """A part file to be written: its bytes and rows."""

    data: bytes
    num_rows: int


def encode(table: pa.Table) -> bytes:
    """A table as Parquet."""
    sink = pa.BufferOutputStream()
    # Dictionaries of distinct texts only take space.
    with pq.ParquetWriter(
        sink, table.schema, compression="zstd", compression_level=3, use_dictionary=False
    ) as writer:
        if table.num_rows:  # `datasets` does not read an empty row group
            writer.write_table(table, row_group_size=table.num_rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The table (some columns of it) of a part file; raises OSError or pa.ArrowException.

    One that would fill the memory is refused before it does, see `_LARGE`.
    """
    names = list(columns) if columns is not None else None
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        size = _size(file.metadata)
        _check_size(size, data)
        # No value is larger than all pages.
        if size * file.metadata.num_rows <= _LARGE or _is_plain(file.metadata):
            return file.read(names, use_threads=False)
        # By an earlier version, or by others: texts may be stored once for many rows.
        rows, size, batches = min(max(_LARGE // size, 1), 128), 0, []
        for batch in file.iter_batches(rows, columns=names, use_threads=False):
            size += batch.nbytes
            _check_size(size, data)
            batches.append(batch)
        return pa.Table.from_batches(batches).combine_chunks()


def _size(metadata: pq.FileMetaData) -> int:
    """Bytes of all pages and rows, as the footer says."""
    pages = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return int(pages + _ROW * metadata.num_rows * metadata.num_columns)


def _is_plain(metadata: pq.FileMetaData) -> bool:
    """Whether the table is no larger than its pages, as the footer says."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = (group.column(k) for group in groups for k in range(group.num_columns))
    return all(_PLAIN.issuperset(chunk.encodings) for chunk in chunks)


def _check_size(size: int, data: bytes) -> None:
    if size > max(_LARGE, _RATIO * len(data)):
        raise pa.ArrowInvalid(f"{len(data):,} bytes that become more than {_LARGE:,}")


def extended(data: bytes, columns: pa.Table, schema: pa.Schema) -> PartFile:
    """The part file `data` with further columns.

    If `encode` made it, with this version of Arrow, the bytes are those of `encode` of all columns.

    Args:
        columns: those that the part file lacks; as many rows.
        schema: of the result. A part file whose columns do not come first in it, or whose footer
            lacks what `encode` writes, is decoded and encoded again.

    Raises:
        OSError, pa.ArrowException: `data` is not Parquet.
        KeyError, ValueError: it is not of such columns and rows.
    """
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        own, rows, groups = file.schema_arrow, file.metadata.num_rows, file.num_row_groups
    if rows != len(columns) or any(schema.field(f.name) != f for f in own):
        raise ValueError(f"{rows} rows of {own.names}, not {len(columns)} of {schema.names}")
    further = pa.schema(list(schema)[len(own) :])
    columns = columns.cast(pa.schema([schema.field(name) for name in columns.column_names]))
    if groups == 1 and further and own.names == schema.names[: len(own)]:
        pages, footer = _split(data)
        more_pages, more = _split(encode(columns.select(further.names)))
        with suppress(KeyError):
            _append(footer, more, len(pages) - len(_MAGIC), schema)
            return PartFile(_joined(pages + more_pages[len(_MAGIC) :], footer), rows)
    table = decode(data)
    for field in columns.schema:
        table = table.append_column(field, columns[field.name])
    return PartFile(encode(table.select(schema.names)), rows)


def _split(data: bytes) -> tuple[bytes, Struct]:
    """The pages of a Parquet file, and its footer."""
    end = len(data) - len(_MAGIC) - 4
    start = end - int.from_bytes(data[end : end + 4], "little")
    return data[:start], loads(data[start:end])


def _joined(pages: bytes, footer: Struct) -> bytes:
    written = dumps(footer)
    return b"".join((pages, written, len(written).to_bytes(4, "little"), _MAGIC))


def _append(footer: Struct, more: Struct, shift: int, schema: pa.Schema) -> None:
    """Add the columns of one row group to the footer of another, `shift` bytes further on."""
    root, *elements = _items(more, _SCHEMA)
    _add(_items(footer, _SCHEMA)[0], root, _CHILDREN)
    _items(footer, _SCHEMA).extend(elements)
    _items(footer, _ORDERS).extend(_items(more, _ORDERS))
    (group,), (added,) = _items(footer, _ROW_GROUPS), _items(more, _ROW_GROUPS)
    for chunk in _items(added, _COLUMNS):
        _shift(chunk, (_OFFSET,), shift)
        _shift(chunk[_COLUMN][1], _PAGES, shift)
    _items(group, _COLUMNS).extend(_items(added, _COLUMNS))
    _add(group, added, _SIZE)
    _add(group, added, _COMPRESSED_SIZE)
    for entry in _items(footer, _METADATA):
        if entry[_KEY][1] == b"ARROW:schema":
            entry[_VALUE] = BINARY, base64.b64encode(schema.serialize())


def _items(fields: Struct, number: int) -> list[Struct]:
    kind, value = fields[number]
    if kind != LIST or value.kind != STRUCT:  # a reader of Thrift takes that for a missing field
        raise ValueError(f"field {number} of the footer is no list of structures")
    return cast(Items, value).values


def _add(fields: Struct, other: Struct, number: int) -> None:
    (kind, value), (other_kind, more) = fields[number], other[number]
    if kind != other_kind:
        raise ValueError(f"field {number} of the footer is no number")
    fields[number] = kind, value + more


def _shift(fields: Struct, numbers: Sequence[int], shift: int) -> None:
    """Move offsets; 0 and a missing field mean that there is nothing."""
    for number in numbers:
        if number in fields and fields[number][1]:
            kind, value = fields[number]
            fields[number] = kind, value + shift
