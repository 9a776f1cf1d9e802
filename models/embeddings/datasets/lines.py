"""Readers of rows in Parquet, JSON Lines, CSV and text. Errors name the file and the row."""

import re
from collections.abc import Iterator
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.text.files import (
    CHUNK,
    LONGEST,
    csv_delimiter,
    csv_rows,
    is_parquet,
    json_object,
    opened,
)

PARQUET, JSON, LINES = "parquet", "json", "lines"  # forms of files; CSV's form is its separator

_ARRAY = re.compile(rb'\s*\[\s*[{"]')  # the beginning of a JSON array
_HEAD = 1_000  # rows inspected for column names; rows per Parquet batch
_CSV = re.compile(r"\.csv(\.\w+)?$")


def rows_of(path: Path, columns: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each row, and its columns as text.

    For Parquet and JSON Lines, row 0 has the column names. The name of a field of a struct is
    `<struct>.<field>`. If `columns` is given, every row must have this number of columns.
    """
    values = values_of(path)
    head = list(islice(values, _HEAD))
    names = list(dict.fromkeys(n for _, of in head if isinstance(of, dict) for n, _ in _texts(of)))
    if names:
        yield 0, names
    for number, row in chain(head, values):
        if isinstance(row, dict):
            of = dict(_texts(row))
            row = [of.get(name, "") for name in names]
        if columns is not None and len(row) != columns:
            raise wrong_columns(path, number, row, columns)
        yield number, row


def has_rows(path: Path) -> bool:
    """Return whether a JSON file contains rows (JSON Lines or an array) instead of settings."""
    with opened(path) as stream:
        head = stream.read(CHUNK)
    return bool(_ARRAY.match(head)) or all(map(json_object, (head + b"\n").split(b"\n")[:2]))


def wrong_columns(path: Path, number: int, row: list[str], expected: int | str) -> UserError:
    """Return the error for a row with the wrong number of columns."""
    return UserError(f"{path}, row {number}: {len(row)} columns, expected {expected}")


def values_of(path: Path, fallback: str = "") -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each row. Numbers start at 1, and are line numbers in text.

    A value is a dict for Parquet and JSON Lines, and otherwise a list of columns. Quotes in
    tab-separated text have no meaning. For `fallback`, see `text_blocks`.
    """
    form = form_of(path)
    if form == PARQUET:
        with in_one_line(f"{path}: cannot be read"), pq.ParquetFile(path) as file:
            batches = map(pa.RecordBatch.to_pylist, file.iter_batches(_HEAD))
            yield from enumerate(chain.from_iterable(batches), 1)
    elif form == JSON:
        for number, line in _lines(path):
            if (record := json_object(line)) is not None:
                yield number, record
            elif line.strip():
                raise UserError(f"{path}, row {number}: not a JSON object; each line must be one")
    elif form == LINES:
        for number, text in numbered_lines(path, fallback):
            yield number, text.split("\t")
    else:
        lines = (_decoded(path, *line, fallback) for line in _lines(path))
        for number, row, fault in csv_rows(lines, form):
            if fault:
                remedy = f"quote fields that contain {form!r}, or give plain text the suffix .txt"
                raise UserError(f"{path}, row {number}: {fault}; {remedy}")
            yield number, row


def form_of(path: Path) -> str:
    """Return PARQUET, JSON, LINES (with or without tabs), or the column separator of CSV. A
    text file named .csv is CSV unless its first line has tabs."""
    if is_parquet(path):
        return PARQUET
    with opened(path) as stream:
        head = stream.read(CHUNK)
    if not head:
        raise UserError(f"{path}: no rows, the file is empty")
    if _ARRAY.match(head):
        raise UserError(f"{path}: is a JSON array; convert it to JSON Lines, one object per line")
    if head.lstrip().startswith(b"{"):
        return JSON
    named = bool(_CSV.search(path.name)) and b"\t" not in head.partition(b"\n")[0]
    return csv_delimiter(head, named=named) or LINES


def numbered_lines(path: Path, fallback: str = "") -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line, without its end (LF or CR LF)."""
    for first, text in text_blocks(path, fallback):
        for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
            yield number, line.removesuffix("\r")


def text_blocks(path: Path, fallback: str = "") -> Iterator[tuple[int, str]]:
    """Yield blocks of lines, each with the number of its first line. `fallback` is the encoding of
    lines that are not UTF-8. Without `fallback`, these lines are errors."""
    for first, block in _blocks(path):
        try:
            text = block.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            lines = enumerate(BytesIO(block), first)
            text = "".join(_decoded(path, *line, fallback) for line in lines)
        yield first, text


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    for first, block in _blocks(path):
        yield from enumerate(BytesIO(block), first)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    first = 1
    with opened(path) as stream:
        while block := stream.read(CHUNK):
            block += stream.readline(LONGEST)
            if len(block) >= LONGEST:
                for number, line in enumerate(BytesIO(block), first):
                    if len(line) >= LONGEST:
                        raise UserError(f"{path}, row {number}: longer than {LONGEST:,} bytes")
            yield first, block
            first += block.count(b"\n")


def _decoded(path: Path, number: int, line: bytes, fallback: str) -> str:
    if b"\0" in line:
        raise UserError(
            f"{path}, row {number}: has NUL bytes; if the file is UTF-16 without a byte order "
            "mark, convert it to UTF-8"
        )
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if not fallback:
            raise UserError(f"{path}, row {number}: not UTF-8") from error
        return line.decode(fallback)


def _texts(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _texts(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
            yield prefix + name, "" if value is None else text.encode(errors="replace").decode()
