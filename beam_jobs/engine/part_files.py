"""Encode and decode part files. They are Parquet files with at most one row group.

To append columns to a part file, `extended` copies the compressed pages of the existing columns.
This is several times faster than compressing the texts again, and gives the same bytes as `encode`.

A Parquet footer uses Thrift's compact protocol. In this module, a Thrift struct is a dict from
field number to (type, value).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC = b"PAR1"

# Types of the compact protocol that occur in footers, by number.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _, _, _STRUCT = range(1, 13)

# Field numbers in Parquet's Thrift definition. Each comment names the struct.
_SCHEMA, _ROW_GROUPS, _METADATA, _ORDERS = 2, 4, 5, 7  # FileMetaData
_CHILDREN = 5  # SchemaElement
_COLUMNS, _SIZE, _COMPRESSED_SIZE = 1, 2, 6  # RowGroup
_OFFSET, _COLUMN = 2, 3  # ColumnChunk
_PAGES = (9, 10, 11, 14)  # ColumnMetaData: offsets of data, index, dictionary and Bloom filter
_KEY, _VALUE = 1, 2  # KeyValue

Struct = dict[int, tuple[int, Any]]


class PartFile(NamedTuple):
    """Bytes and number of rows of a part file."""

    data: bytes
    num_rows: int


def encode(table: pa.Table) -> bytes:
    """Encode a table as Parquet."""
    sink = pa.BufferOutputStream()
    # Most texts are distinct, so dictionaries would take more space.
    with pq.ParquetWriter(
        sink, table.schema, compression="zstd", compression_level=3, use_dictionary=False
    ) as writer:
        if table.num_rows:  # the library `datasets` fails on an empty row group
            writer.write_table(table, row_group_size=table.num_rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Decode a part file: all columns, or the columns in `columns` that the file contains."""
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        return file.read(columns, use_threads=False)


def extended(data: bytes, columns: pa.Table, schema: pa.Schema) -> PartFile:
    """Add `columns` to a part file. `schema` is the schema of the result."""
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        own, groups = file.schema_arrow.names, file.num_row_groups
    further = schema.names[len(own) :]
    if groups != 1 or not further or schema.names[: len(own)] != own:
        table = decode(data)
        for name in columns.column_names:
            table = table.append_column(name, columns[name])
        return PartFile(encode(table.select(schema.names).cast(schema)), len(columns))
    pages, footer = _split(data)
    added = pa.schema(list(schema)[len(own) :])
    more_pages, more = _split(encode(columns.select(further).cast(added)))
    _append(footer, more, len(pages) - len(_MAGIC))
    for entry in footer[_METADATA][1]:
        if entry[_KEY][1] == b"ARROW:schema":
            entry[_VALUE] = _BINARY, base64.b64encode(schema.serialize())
    out = bytearray(pages + more_pages[len(_MAGIC) :])
    start = len(out)
    _write(out, _STRUCT, footer)
    return PartFile(bytes(out) + (len(out) - start).to_bytes(4, "little") + _MAGIC, len(columns))


def _split(data: bytes) -> tuple[bytes, Struct]:
    end = len(data) - len(_MAGIC) - 4
    start = end - int.from_bytes(data[end : end + 4], "little")
    return data[:start], _Reader(data[start:end]).value(_STRUCT)


def _append(footer: Struct, more: Struct, shift: int) -> None:
    """Append the columns in `more` to `footer`. The columns' pages moved by `shift` bytes."""
    root, *elements = more[_SCHEMA][1]
    _add(footer[_SCHEMA][1][0], root, _CHILDREN)
    footer[_SCHEMA][1].extend(elements)
    footer[_ORDERS][1].extend(more[_ORDERS][1])
    (group,), (added,) = footer[_ROW_GROUPS][1], more[_ROW_GROUPS][1]
    for chunk in added[_COLUMNS][1]:
        _shift(chunk, (_OFFSET,), shift)
        _shift(chunk[_COLUMN][1], _PAGES, shift)
    group[_COLUMNS][1].extend(added[_COLUMNS][1])
    _add(group, added, _SIZE)
    _add(group, added, _COMPRESSED_SIZE)


def _add(fields: Struct, other: Struct, number: int) -> None:
    kind, value = fields[number]
    fields[number] = kind, value + other[number][1]


def _shift(fields: Struct, numbers: Sequence[int], shift: int) -> None:
    for number in numbers:
        if number in fields and fields[number][1]:  # absent if there is no such page
            kind, value = fields[number]
            fields[number] = kind, value + shift


class _Items(list[Any]):
    kind: int


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def raw(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.raw(1)[0]) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_I16, _I32, _I64):
            value = self.varint()
            return value >> 1 ^ -(value & 1)  # zigzag: the lowest bit is the sign
        if kind == _BINARY:
            return self.raw(self.varint())
        if kind == _LIST:
            byte = self.raw(1)[0]
            size = self.varint() if byte >> 4 == 15 else byte >> 4
            items = _Items(self.value(byte & 0x0F) for _ in range(size))
            items.kind = byte & 0x0F
            return items
        if kind != _STRUCT:
            return self.raw({_BYTE: 1, _DOUBLE: 8}[kind])
        fields: Struct = {}
        number = 0
        while byte := self.raw(1)[0]:
            number = number + (byte >> 4) if byte >> 4 else self.value(_I16)
            fields[number] = byte & 0x0F, self.value(byte & 0x0F)
        return fields


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_I16, _I32, _I64):
        _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
    elif kind in (_BYTE, _DOUBLE):
        out += value
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == _LIST:
        out.append(min(len(value), 15) << 4 | value.kind)
        if len(value) >= 15:
            _write_varint(out, len(value))
        for item in value:
            _write(out, value.kind, item)
    elif kind == _STRUCT:
        before = 0
        for number, (of, field) in value.items():
            if 0 < number - before < 16:
                out.append(number - before << 4 | of)
            else:
                out.append(of)
                _write(out, _I16, number)
            _write(out, of, field)
            before = number
        out.append(0)
