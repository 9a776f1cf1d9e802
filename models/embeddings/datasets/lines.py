"""Lines and rows of files in any form; errors name the file and the row."""

import re
from collections.abc import Iterator
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

PARQUET, JSON, LINES = "parquet", "jsonl", "lines"
"""Forms of files; that of CSV is what separates its columns."""

_ARRAY = re.compile(rb'\s*\[\s*[{"]')  # of JSON, over several lines or on one
_HEAD = 1_000  # objects of JSON Lines that tell the names of all
_CSV = re.compile(r"\.csv(\.\w+)?$")


def form_of(path: Path) -> str:
    """The form of a file, by its beginning; a CSV file may also have the suffix, and no tabs."""
    if is_parquet(path):
        return PARQUET
    with opened(path) as stream:
        head = stream.read(CHUNK)
    if _ARRAY.match(head):
        raise UserError(f"{path}: is a JSON array; give it as JSON Lines, an object a line")
    if head.lstrip().startswith(b"{"):
        return JSON
    named = bool(_CSV.search(path.name)) and b"\t" not in head.partition(b"\n")[0]
    return csv_delimiter(head, named=named) or LINES


def rows_of(path: Path, columns: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """Row numbers from 1, and columns, of tab-separated text without quoting, CSV, JSON Lines or
    Parquet. Row 0 of the latter two has the names of the columns; a dot leads into a structure.
    """
    form = form_of(path)
    if form in (PARQUET, JSON):
        rows = _of_records(_parquet_objects(path) if form == PARQUET else json_objects(path))
    elif form == LINES:
        rows = ((number, line.split("\t")) for number, line in numbered_lines(path))
    else:
        rows = csv_lines(path, form)
    for number, row in rows:
        if columns is not None and len(row) != columns:
            raise wrong_columns(path, number, row, columns)
        yield number, row


def wrong_columns(path: Path, number: int, row: list[str], expected: int | str) -> UserError:
    """The error for a row with another number of columns."""
    return UserError(f"{path}, row {number}: {len(row)} tab-separated columns, expected {expected}")


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON Lines by line; empty lines have none."""
    for number, line in _lines(path):
        if line.strip():
            record = json_object(line)
            if record is None:
                raise UserError(f"{path}, row {number}: no JSON object; a line must have one")
            yield number, record


def csv_lines(path: Path, delimiter: str, fallback: str = "") -> Iterator[tuple[int, list[str]]]:
    """The rows of CSV, numbered by line; all have as many columns."""
    size, lines = 0, (_decoded(path, *line, fallback) for line in _lines(path))
    for number, row, fault in csv_rows(lines, delimiter):
        size = size or len(row)
        if fault or len(row) != size:
            fault = fault or f"{len(row)} columns, expected {size}"
            raise UserError(
                f"{path}, row {number}: no CSV ({fault}); quote what holds {delimiter!r}, or "
                "give lines as .txt"
            )
        yield number, row


def numbered_lines(path: Path, fallback: str = "") -> Iterator[tuple[int, str]]:
    r"""The lines of a file without their ends (\n or \r\n), numbered from 1.

    `fallback` is the encoding of lines that are not UTF-8, if they are no error.
    """
    for number, line in _lines(path):
        yield number, _decoded(path, number, line, fallback).removesuffix("\n").removesuffix("\r")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with opened(path) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), 1):
            if len(line) == LONGEST:
                raise UserError(f"{path}, row {number}: longer than {LONGEST:,} bytes")
            yield number, line


def _decoded(path: Path, number: int, line: bytes, fallback: str) -> str:
    if b"\0" in line:
        raise UserError(
            f"{path}, row {number}: has NUL bytes; if it is UTF-16 without a byte order mark, give "
            "it as UTF-8"
        )
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if not fallback:
            raise UserError(f"{path}, row {number}: not UTF-8") from error
        return line.decode(fallback)


def _parquet_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with in_one_line(f"{path}: cannot be read"), pq.ParquetFile(path) as file:
        batches = map(pa.RecordBatch.to_pylist, file.iter_batches(_HEAD))
        yield from enumerate(chain.from_iterable(batches), 1)


def _of_records(records: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, list[str]]]:
    """The names of the columns, row 0, and the values."""
    head = [(number, dict(_scalars(record))) for number, record in islice(records, _HEAD)]
    names = list(dict.fromkeys(name for _, record in head for name in record))
    yield 0, names
    rest = ((number, dict(_scalars(record))) for number, record in records)
    for number, record in chain(head, rest):
        yield number, [record.get(name, "") for name in names]


def _scalars(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _scalars(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
            yield prefix + name, "" if value is None else text.encode(errors="replace").decode()
