"""Lines of text files, plain or gzip; errors name the file and the row."""

from collections.abc import Iterator
from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.models.text.files import opened


def tab_separated(path: Path, columns: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """Row numbers from 1 and the columns of a file without quoting."""
    for number, line in numbered_lines(path):
        row = line.split("\t")
        if columns is not None and len(row) != columns:
            raise wrong_columns(path, number, row, columns)
        yield number, row


def wrong_columns(path: Path, number: int, row: list[str], expected: int | str) -> UserError:
    """The error for a row with another number of columns."""
    return UserError(f"{path}, row {number}: {len(row)} tab-separated columns, expected {expected}")


_LONGEST = 1 << 24
"""Bytes of a line: a damaged file may have no line ends."""


def numbered_lines(path: Path, fallback: str = "") -> Iterator[tuple[int, str]]:
    r"""The lines of a UTF-8 file without their ends (\n or \r\n), numbered from 1.

    `fallback` is the encoding of lines that are not UTF-8, if they are no error.
    """
    with opened(path) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(_LONGEST), b""), 1):
            if len(line) == _LONGEST:
                raise UserError(f"{path}, row {number}: longer than {_LONGEST:,} bytes")
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            try:
                decoded = text.decode()
            except UnicodeDecodeError as error:
                if not fallback:
                    raise UserError(f"{path}, row {number}: not UTF-8") from error
                decoded = text.decode(fallback)
            yield number, decoded.removesuffix("\n").removesuffix("\r")
