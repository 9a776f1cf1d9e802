"""The lines of a plain or compressed file, read with bounded memory."""

import bz2
import gzip
import hashlib
import io
import lzma
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import xxhash

from paraloom.beam_jobs.io.storage import MissingError, is_remote, open_file, why
from paraloom.models.errors import UserError
from paraloom.models.files import GZIP, looked_up, packed

CHUNK = 1 << 20
"""Bytes to read at once."""
_SHOWN = 4_000  # bytes of a line that is too long
_BOM = b"\xef\xbb\xbf"
_UNREADABLE = {  # UTF-8 text cannot begin with any of these
    b"PK\x03\x04": "ZIP",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


class Member(NamedTuple):
    """Where a member of a gzip file begins; a file of another compression is one member."""

    offset: int  # bytes of the file before it
    start: int  # bytes of text before it
    begins: bool  # a line


class Span(NamedTuple):
    """Consecutive lines of a file."""

    start: int  # bytes of text before them
    size: int  # their bytes of text
    digest: str  # XXH3 of their text
    member: Member | None  # of a gzip file: the one that they begin in


class _Digested(io.RawIOBase):
    """So many bytes of a file, digested while they are read."""

    def __init__(self, file: BinaryIO, algorithm: Any, size: int = sys.maxsize) -> None:
        self._file, self._digest, self._left = file, algorithm(), size

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any, /) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._digest.update(data)
        self._left -= len(data)
        return len(data)

    def digest(self) -> str:
        """The digest of all bytes; reads what is left of them."""
        while self.read(CHUNK):
            pass
        return str(self._digest.hexdigest())


@contextmanager
def open_text(path: str, sha256: str | None = None) -> Iterator[io.BufferedReader]:
    """Open a file of UTF-8 text, decompressed, without byte order marks.

    Args:
        sha256: the checksum that the caller expects of the file.

    Raises:
        UserError: the file cannot be opened, is empty, or is no text; or, while the block reads,
            it is truncated or corrupt; or, after the block, what was read is not the expected file.
    """
    with file_errors(path), open_file(path) as raw:
        digested = _Digested(raw, hashlib.sha256) if sha256 else None
        stream = decompressed(_buffered(digested or raw))
        head = stream.peek(8)
        for magic, kind in _UNREADABLE.items():
            if head.startswith(magic):
                raise UserError(f"{path}: is {kind}; give it as UTF-8 text, plain or compressed")
        if head.startswith(_BOM):
            stream.read(len(_BOM))
        if not stream.peek(1):
            raise UserError(f"{path}: no rows, the file is empty")
        yield stream
        if digested and digested.digest() != sha256:
            raise changed(path)


@contextmanager
def open_span(path: str, span: Span) -> Iterator[io.BufferedReader]:
    """Open some lines of a file.

    Raises:
        UserError: as `open_text`; or, after the block, they are not those that were indexed.
    """
    with file_errors(path), open_file(path) as raw:
        raw.seek(span.member.offset if span.member else span.start)
        stream = _buffered(raw)
        if span.member:
            stream = decompressed(stream, span.member)
            _Digested(stream, xxhash.xxh3_128, span.start - span.member.start).digest()
        text = _Digested(stream, xxhash.xxh3_128, span.size)
        yield _buffered(text)
        if text.digest() != span.digest:
            raise changed(path)


def decompressed(stream: io.BufferedReader, first: Member | None = None) -> io.BufferedReader:
    """The text of a compressed file, from the member at which `stream` is; of others the same."""
    head = stream.peek(10)
    if head.startswith(GZIP):
        return _buffered(_Gzip(stream, first))
    decoder = _DECODERS.get(kind := packed(head))
    return _buffered(_Decoded(kind, decoder(stream))) if decoder else stream


def changed(path: str) -> UserError:
    """The error for a file that is not the one whose digest was taken."""
    return UserError(
        f"{path}: changed while the run read it; the same command reads it from the beginning"
    )


def blocks(stream: BinaryIO, rows: int, limit: int) -> Iterator[list[bytes]]:
    """The lines of `stream` without their ends, `rows` at a time, fewer only at the end.

    A line longer than `limit` bytes is cut, and ends in a line feed, which no other line contains.
    """
    lines = chain.from_iterable(_split(stream, limit))
    return iter(lambda: list(islice(lines, rows)), [])


def _split(stream: BinaryIO, limit: int) -> Iterator[list[bytes]]:
    rest = b""
    while chunk := stream.read(CHUNK):
        text = rest + chunk
        *lines, rest = text.split(b"\n")
        # Enough to detect that the line is too long, even if the last byte is half a CRLF.
        rest = rest[: limit + 2]
        yield _trim(lines, limit, crlf=b"\r" in text)
    if rest:
        yield _trim([rest], limit, crlf=True)


def _trim(lines: list[bytes], limit: int, crlf: bool) -> list[bytes]:
    if crlf:
        lines = [line.removesuffix(b"\r") for line in lines]
    if max(map(len, lines), default=0) > limit:
        shown = min(limit, _SHOWN)
        lines = [line if len(line) <= limit else line[:shown] + b"\n" for line in lines]
    return lines


class _Gzip(io.RawIOBase):
    """The text of a gzip file, which may be several files one after another: each of them may begin
    with a byte order mark, which is left out.

    Args:
        stream: at the first member to read.
    """

    def __init__(self, stream: io.BufferedReader, first: Member | None = None) -> None:
        self._stream = stream
        # Where it is in the file and in the text, and whether at a line.
        self._offset, self._at, self._begins = first or Member(0, 0, begins=True)
        self.members: deque[Member] = deque()
        """Those that were begun; whoever reads it removes them."""
        self._member: Any = None  # that is being decompressed
        self._rest = b""  # compressed
        self._ready = b""  # text: with what was held, it may be longer than the buffer
        self._held: bytes | None = None  # the beginning of a member that begins a line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and (self._member or self._next_member()):
            data = self._rest or self._more()
            if not data:
                raise EOFError("the file ends within a member")
            text = self._without_mark(self._member.decompress(data, len(buffer)))
            self._ready, self._begins = text, text.endswith(b"\n") if text else self._begins
            self._rest = self._member.unconsumed_tail
            if self._member.eof:
                self._rest, self._member = self._member.unused_data, None
        text, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(text)] = text
        self._at += len(text)
        return len(text)

    def tell(self) -> int:
        return self._at

    @property
    def waiting(self) -> int:
        """Bytes of the file that are read, but not decompressed yet."""
        return len(self._rest)

    def _more(self) -> bytes:
        data = self._stream.read1(CHUNK)
        self._offset += len(data)
        return data

    def _next_member(self) -> bool:
        """Begin a member; False at the end of the file."""
        while not (rest := self._rest.lstrip(b"\0")):  # padding
            self._rest = self._more()
            if not self._rest:
                return False
        self._rest = rest
        if not GZIP.startswith(rest[:2]):
            raise gzip.BadGzipFile("something else follows")
        self.members.append(Member(self._offset - len(rest), self._at, self._begins))
        self._member, self._held = zlib.decompressobj(31), b"" if self._begins else None
        return True

    def _without_mark(self, text: bytes) -> bytes:
        if self._held is None:
            return text
        text = self._held + text
        if len(text) < len(_BOM) and _BOM.startswith(text) and not self._member.eof:
            self._held = text
            return b""
        self._held = None
        return text.removeprefix(_BOM)


class _Decoded(io.RawIOBase):
    """The text of a file of another compression."""

    def __init__(self, kind: str, pieces: Iterator[bytes]) -> None:
        self._kind, self._pieces, self._ready, self._at = kind, pieces, b"", 0
        self.members = deque([Member(0, 0, begins=True)])

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        try:
            self._ready = self._ready or next(self._pieces, b"")
        except (EOFError, OSError, lzma.LZMAError) as error:
            raise CorruptError(f"truncated or corrupt {self._kind} ({error})") from error
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _zstd(stream: io.BufferedReader) -> Iterator[bytes]:
    # Arrow's would close the file, which is still to be digested.
    shield = SimpleNamespace(read=stream.read, close=lambda: None, closed=False)
    decoder = pa.CompressedInputStream(pa.PythonFile(shield, "r"), "zstd")
    return iter(lambda: decoder.read(CHUNK), b"")


def _streams(new: Callable[[], Any], stream: io.BufferedReader) -> Iterator[bytes]:
    """The text of streams one after another; the standard library's files ignore a damaged one."""
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
    "zstd": _zstd,
    "xz": partial(_streams, lzma.LZMADecompressor),
    "bzip2": partial(_streams, bz2.BZ2Decompressor),
}


class CorruptError(OSError):
    """A compressed file ends early, or cannot be decompressed."""


def _buffered(stream: object) -> io.BufferedReader:
    return io.BufferedReader(cast(io.RawIOBase, stream), CHUNK)


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn errors of reading `path` in the block into a UserError that names it."""
    try:
        yield
    except EOFError as error:
        raise UserError(f"{path}: truncated gzip; fetch the file again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: corrupt gzip ({error}); fetch the file again") from error
    except CorruptError as error:
        raise UserError(f"{path}: {error}; fetch the file again") from error
    except pa.ArrowException as error:
        raise UserError(f"{path}: truncated or corrupt ({why(error)[:200]})") from error
    except MissingError as error:
        raise UserError(f"{path}: no such file{looked_up(path)}") from error
    except UserError:
        raise
    except Exception as error:
        if not is_remote(path) and not isinstance(error, OSError):
            raise
        raise UserError(f"{path}: cannot be read ({why(error)})") from error
