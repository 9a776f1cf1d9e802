"""Reads and writes structures in Thrift's compact protocol, of which Parquet's footers are made.

A structure is a mapping of field numbers to `(type, value)`, a list is an `Items`. Fields that a
later version of Parquet adds are kept, because no field is known by name here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)

Struct = dict[int, tuple[int, Any]]
"""Fields by number: type and value; integers, bytes, booleans, `Items`, structures."""


class Items(NamedTuple):
    """A list: the type of its items, and these."""

    kind: int
    values: list[Any]


def loads(data: bytes) -> Struct:
    """Read a structure."""
    reader = _Reader(data)
    try:
        value = reader.struct()
    except (IndexError, RecursionError) as error:
        raise ValueError("not a structure of Thrift") from error
    if reader.at != len(data):
        raise ValueError("data after a structure of Thrift")
    return value


def dumps(value: Struct) -> bytes:
    """Write a structure; `dumps(loads(data)) == data` for what Thrift itself wrote."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def raw(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise IndexError
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        value = shift = 0
        while (byte := self.byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise IndexError
        return value | byte << shift

    def integer(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)  # zigzag: the sign is the lowest bit

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in (I16, I32, I64):
            return self.integer()
        if kind in (BYTE, DOUBLE):
            return self.raw(1 if kind == BYTE else 8)
        if kind == BINARY:
            return self.raw(self.varint())
        if kind == LIST:
            return self.items()
        if kind == STRUCT:
            return self.struct()
        raise IndexError

    def items(self) -> Items:
        byte = self.byte()
        kind = byte & 0x0F
        size = self.varint() if byte >> 4 == 15 else byte >> 4
        if kind in (TRUE, FALSE) or size > len(self.data) - self.at:
            raise IndexError
        return Items(kind, [self.value(kind) for _ in range(size)])

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while byte := self.byte():
            number = number + (byte >> 4) if byte >> 4 else self.integer()
            kind = byte & 0x0F
            fields[number] = kind, self.value(kind)
        return fields


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
    elif kind in (BYTE, DOUBLE):
        out += value
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == LIST:
        size = len(value.values)
        out.append(min(size, 15) << 4 | value.kind)
        if size >= 15:
            _write_varint(out, size)
        for item in value.values:
            _write(out, value.kind, item)
    elif kind == STRUCT:
        _write_struct(out, value)


def _write_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for number, (kind, value) in fields.items():
        if 0 < number - before < 16:
            out.append(number - before << 4 | kind)
        else:
            out.append(kind)
            _write(out, I16, number)
        _write(out, kind, value)
        before = number
    out.append(0)
