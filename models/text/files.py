"""Opening and decoding of files with texts or rows.

Compression with gzip, zstd, bzip2 or xz is recognised by a file's content, not by its name. Text
must be UTF-8, or UTF-16 or UTF-32 with a byte order mark.
"""

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from itertools import islice
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pyarrow as pa

from paraloom.models.errors import UserError, in_one_line

CHUNK = 1 << 20  # bytes to read at once
PARQUET = b"PAR1"  # first bytes of Parquet files
LONGEST = 1 << 24  # maximum bytes of a line; a damaged file may have no line breaks

_PACKED = {
    "gzip": rb"\x1f\x8b",
    "zstd": rb"\x28\xb5\x2f\xfd",
    "xz": rb"\xfd7zXZ\x00",
    "bzip2": rb"BZh[1-9]1AY&SY",
}
_NO_TEXT = {
    "ZIP (as XLSX and DOCX are, too)": rb"PK\x03\x04",
    "Parquet": PARQUET,
    "Arrow IPC": rb"ARROW1",
    "a tar archive": rb".{257}ustar",
    "a 7z archive": rb"7z\xbc\xaf\x27\x1c",
    "PDF": rb"%PDF-",
    "a file of Office (XLS, DOC)": rb"\xd0\xcf\x11\xe0",
    "RTF": rb"\{\\rtf",
    "HTML": rb"\s*(?i:<!doctype html|<html[\s>])[^\t]*$",  # within the first _SEEN bytes
}
_MARKS = {  # UTF-32 before UTF-16, because BOM_UTF32_LE begins with BOM_UTF16_LE
    codecs.BOM_UTF8: "",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_ROUNDED = re.compile(rb"\d{20}|-\d{19}")  # long integers, which orjson may convert to floats
_JSON = json.JSONDecoder(
    parse_int=lambda text: int(text) if len(text) < 4300 else Decimal("Infinity"),
    parse_float=lambda text: of if isfinite(of := float(text)) else Decimal("Infinity"),
)
"""Parser of JSON. A number that is too large for Python becomes an infinite Decimal, which no
column accepts."""
_SEEN = 512  # bytes inspected to recognise a file type
NAME = re.compile(r"[^\W\d][\w.:-]*( [\w.:-]+){0,2}")  # a plausible column name
_LINES = 100  # number of lines that `csv_delimiter` inspects
_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?\r?\n')  # first line of some CSV files, for Excel
_TRUNCATED = "unexpected end of data"  # error message of `csv` if the last quote is not closed


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file, decompress it, and convert text to UTF-8 (`as_text`)."""
    try:
        with path.open("rb") as raw:
            yield as_text(buffered(raw), path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


def is_parquet(path: Path) -> bool:
    """Return whether a file begins like a Parquet file."""
    with in_one_line(f"{path}: cannot be read"), path.open("rb") as stream:
        return stream.read(len(PARQUET)) == PARQUET


def as_text(stream: io.BufferedReader, path: Path | str) -> io.BufferedReader:
    """Decompress a stream, and convert it to UTF-8 without a byte order mark.

    Raises:
        UserError: the file is a pipe, an archive or not text. The returned stream also raises this
            error when a truncated or corrupt part is read.
    """
    if Path(path).is_fifo():
        raise UserError(f"{path}: is a pipe, which cannot be read twice; give a file")
    head = stream.peek(_SEEN)
    for kind, magic in _PACKED.items():
        if re.match(magic, head):
            stream = buffered(_Decoded(path, kind, _DECODERS[kind](stream)))
    head = stream.peek(_SEEN)
    refuse_pointer(head, path)
    for kind, magic in _NO_TEXT.items():
        if re.match(magic, head, re.DOTALL):
            raise UserError(f"{path}: is {kind}; convert it to UTF-8 text, plain or compressed")
    mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
    if kind := _MARKS.get(mark, ""):
        return recoded(stream, path, kind)
    stream.read(len(mark))
    return stream


def refuse_pointer(head: bytes, path: Path | str) -> None:
    """Raise a UserError if a file begins like a Git LFS pointer, which stands for the real file."""
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        raise UserError(f"{path}: is a Git LFS pointer, not the file itself; run `git lfs pull`")


def unpacked(stream: io.BufferedReader, path: Path | str) -> io.BufferedReader:
    """Decompress a zstd file whose content may be of any type."""
    return buffered(_Decoded(path, "zstd", _zstd(stream)))


def recoded(stream: io.BufferedReader, path: Path | str, encoding: str) -> io.BufferedReader:
    """Convert text from another encoding to UTF-8. Invalid characters become invalid UTF-8."""
    return buffered(_Decoded(path, encoding, _decoded(encoding, stream)))


def is_plain(stream: io.BufferedReader) -> bool:
    """Return whether `as_text` returned the file's bytes without decompression or conversion."""
    return not isinstance(stream.raw, _Decoded)


def buffered(stream: object) -> io.BufferedReader:
    """Return a buffered reader of a raw stream."""
    return io.BufferedReader(cast(io.RawIOBase, stream), CHUNK)


class _Decoded(io.RawIOBase):
    def __init__(self, path: Path | str, kind: str, pieces: Iterator[bytes]) -> None:
        self._what, self._pieces, self._ready = f"{path}: truncated or corrupt {kind}", pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            while len(self._ready) < _SEEN and (more := next(self._pieces, None)) is not None:
                self._ready += more
        except (EOFError, OSError, lzma.LZMAError, zlib.error, UnicodeError) as error:
            raise UserError(f"{self._what} ({error}); fetch the file again") from error
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def _decoded(encoding: str, stream: io.BufferedReader) -> Iterator[bytes]:
    errors = "surrogatepass" if encoding.startswith("UTF") else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    while chunk := stream.read(CHUNK):
        yield decoder.decode(chunk).encode(errors="surrogatepass")
    decoder.decode(b"", final=True)


def _gzip(stream: io.BufferedReader) -> Iterator[bytes]:
    file = gzip.GzipFile(fileobj=stream)
    return iter(lambda: file.read1(CHUNK), b"")


def _zstd(stream: io.BufferedReader) -> Iterator[bytes]:
    # Prevent Arrow from closing the file, whose digest is computed later.
    shield = SimpleNamespace(read=stream.read, close=lambda: None, closed=False)
    decoder = pa.CompressedInputStream(pa.PythonFile(shield, "r"), "zstd")
    return iter(lambda: decoder.read(CHUNK), b"")


def _streams(new: Callable[[], Any], stream: io.BufferedReader) -> Iterator[bytes]:
    """Decompress concatenated streams. `lzma.open` and `bz2.open` may ignore damage after the first
    stream, so they are not used."""
    data = stream.read1(CHUNK)
    while data:
        decoder = new()
        while not decoder.eof:
            if decoder.needs_input and not (data := data or stream.read1(CHUNK)):
                raise EOFError("it ends early")
            if text := decoder.decompress(data, CHUNK):
                yield text
            data = b""
        data = decoder.unused_data
        while not (data := data.lstrip(b"\0")) and (data := stream.read1(CHUNK)):  # padding
            pass


_DECODERS: dict[str, Callable[[io.BufferedReader], Iterator[bytes]]] = {
    "gzip": _gzip,
    "zstd": _zstd,
    "xz": partial(_streams, lzma.LZMADecompressor),
    "bzip2": partial(_streams, bz2.BZ2Decompressor),
}


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a string type or a dictionary of strings."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(kind) in {"string", "large_string", "string_view"}


def flat(table: pa.Table) -> pa.Table:
    """Flatten struct fields into columns with names such as `translation.cs`."""
    while any(map(pa.types.is_struct, table.schema.types)):
        table = table.flatten()
    return table


def json_object(line: bytes) -> dict[str, Any] | None:
    r"""Parse the object in a line of JSON Lines, or return None if there is no object.

    NaN and texts with invalid Unicode are parsed. Numbers such as 1e999 become an infinite Decimal.

    >>> json_object(b'{"text": "a dog", "score": NaN}'), json_object(b'["a dog"]')
    ({'text': 'a dog', 'score': nan}, None)
    """
    try:
        record = orjson.loads(b"" if _ROUNDED.search(line) else line)
    except orjson.JSONDecodeError:
        try:
            record = _JSON.decode(line.decode(errors="surrogateescape"))
        except (ValueError, RecursionError):
            return None
    return record if isinstance(record, dict) else None


def text_array(values: list[str | None]) -> pa.StringArray:
    """Convert texts from `json_object` or `csv_rows`. Invalid Unicode becomes invalid UTF-8."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        raw = [text if text is None else text.encode(errors="surrogatepass") for text in values]
        return pa.array(raw, pa.binary()).view(pa.string())


def csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield the line number (from 1), the values, and the fault of each CSV row.

    A row of several lines has the number of its first line. A valid row has the fault "". The
    format is RFC 4180. If quotes are invalid, the line in which the row begins is its only value,
    and the next line begins a new row. Empty lines and a first line such as `sep=;` are skipped.
    """
    rest, again, read, expected, number = iter(lines), deque[str](), list[str](), 0, 1
    if _SEPARATOR.fullmatch(first := next(rest, "")):
        number = 2
    else:
        again.append(first)

    def source() -> Iterator[str]:
        while line := again.popleft() if again else next(rest, ""):
            read.append(line)
            yield line

    reader = csv.reader(source(), delimiter=delimiter, strict=True)
    while True:
        read.clear()
        fault = ""
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = f" in line {number + len(read) - 1:,}" * (len(read) > 1)
            fault = f"no CSV ({error}{where})".replace("\t", "tab")
            again.extendleft(reversed(read[1:]))
            del read[1:]
            row = [read[0].rstrip("\r\n")]
            reader = csv.reader(source(), delimiter=delimiter, strict=True)
        else:
            expected = expected or len(row)
            if row and len(row) != expected:
                fault = f"{len(row)} column{'s' * (len(row) > 1)} instead of {expected}"
        if row:
            yield number, row, fault
        number += len(read)


def csv_delimiter(head: bytes, *, named: bool = False) -> str | None:
    """Guess the delimiter of a CSV file from its first `CHUNK` bytes. Return None if it is not CSV.

    The first line may name the delimiter, as in `sep=;`. `named` means that the file is known to be
    CSV, for example by its name. Without `named`, the file may be text with commas in sentences. It
    then counts as CSV only if line 1 has column names, all rows have the same number of columns,
    and the delimiter is a comma or a semicolon. The last column may be unnamed, because some
    programs end each row with a delimiter.
    """
    text = head.decode(errors="replace")
    if found := _SEPARATOR.match(text):
        return found[1]
    lines = list(islice(io.StringIO(text, newline=""), _LINES))
    first = re.sub('"[^"]*"', "", "".join(lines[:1]))
    delimiter = max(",;\t", key=first.count)
    if named:
        return delimiter
    rows = list(csv_rows(lines, delimiter))
    if len(lines) == _LINES or len(head) == CHUNK:  # the last row may be truncated
        del rows[next((i for i, (*_, fault) in enumerate(rows) if _TRUNCATED in fault), -1) :]
    if len(rows) < 2 or "\t" in first or any(fault for *_, fault in rows):
        return None
    _, (*names, last), _ = rows[0]
    names += [last] if last else []
    valid = all(map(NAME.fullmatch, names))
    return delimiter if valid and len({*names}) == len(names) > 1 else None
