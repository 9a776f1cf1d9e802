"""Find input files, and read whole files or ranges of lines in bounded memory."""

import glob
import hashlib
import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.storage import MissingError, is_remote, open_file, size, why, writing
from paraloom.models.errors import EmptyFileError, UserError
from paraloom.models.files import looked_up
from paraloom.models.text.files import CHUNK, as_text, buffered, is_plain, unpacked

_HEAD = 1 << 22  # maximum number of bytes that `beginning` reads
_TEXT = 1 << 25  # maximum number of bytes of text that `beginning` returns
_SHOWN = 4_000  # number of bytes to which a line that is too long is cut


def expand(patterns: str | list[str], key: str) -> list[str]:
    """List the files that paths and globs match. The files of each glob are sorted."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    if not patterns:
        raise UserError(f"{key}: names no file")
    return [path for pattern in patterns for path in _matches(pattern)]


def _matches(pattern: str) -> list[str]:
    # The name of an existing file may contain wildcards. `open_text` reports missing files.
    if not glob.has_magic(pattern) or (not is_remote(pattern) and Path(pattern).exists()):
        return [pattern]
    if is_remote(pattern):
        found = [entry.path for entry in storage.match(pattern)]
    else:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - Path takes no absolute patterns
        found = [path for path in found if Path(path).is_file()]
    if not found:
        raise UserError(f"{pattern}: no file matches{looked_up(pattern)}")
    return sorted(found)


class Span(NamedTuple):
    """Consecutive lines of a file."""

    start: int  # byte at which the lines begin in the text
    size: int  # bytes of text
    digest: str  # XXH3 of the text
    copy: str = ""  # path of a copy of the text (zstd); "" if the file is plain text


class _Digested(io.RawIOBase):
    """A file that computes a digest of the bytes that are read. At most `size` bytes are read."""

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
        """Read the remaining bytes, and return the digest of all bytes."""
        while self.read(CHUNK):
            pass
        return str(self._digest.hexdigest())


@contextmanager
def open_text(path: str, sha256: str | None = None) -> Iterator[io.BufferedReader]:
    """Open a file with `as_text`. At the end of the block, check the file's SHA-256 if it is given.

    Raises UserError if the file is empty, unreadable or not text, or if it has changed.
    """
    with file_errors(path), open_file(path) as raw:
        digested = _Digested(raw, hashlib.sha256) if sha256 else None
        stream = as_text(buffered(digested or raw), path)
        if not stream.peek(1):
            raise EmptyFileError(f"{path}: no rows, the file is empty")
        yield stream
        if digested and digested.digest() != sha256:
            raise changed(path)


@contextmanager
def open_span(path: str, span: Span) -> Iterator[io.BufferedReader]:
    """Open a span. At the end of the block, raise UserError if the span has changed."""
    with file_errors(path), open_file(span.copy or path) as raw:
        raw.seek(0 if span.copy else span.start)
        file = unpacked(buffered(raw), span.copy) if span.copy else raw
        text = _Digested(file, xxhash.xxh3_128, span.size)
        yield buffered(text)
        if text.digest() != span.digest:
            raise changed(path)


def index(
    path: str, sha256: str | None, lines: int, copies: str | None = None
) -> tuple[int, list[Span]]:
    """Return the number of lines of a file, and spans of `lines` lines.

    A file that is compressed or not in UTF-8 can only be read from its beginning. Its spans are
    copied to files named `<copies>-<number>`. Without `copies`, such a file has no spans.
    """
    total, here, last = 0, 0, b""
    with open_text(path, sha256) as stream, ExitStack() as stack:
        plain = is_plain(stream)
        divided = _Divided(stream.tell() if plain else 0, stack, None if plain else copies)
        while text := stream.read(CHUNK):
            found, begin = text.count(b"\n"), 0
            if here + found >= lines:
                ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
                for end in ends[lines - here - 1 :: lines].tolist():
                    divided.add(text[begin:end])
                    divided.end()
                    begin = end
            divided.add(text[begin:])
            total, here, last = total + found, (here + found) % lines, text[-1:]
        divided.end()
    return total + (last != b"\n"), divided.spans if plain or copies else []


class _Divided:
    def __init__(self, start: int, stack: ExitStack, copies: str | None = None) -> None:
        self.spans: list[Span] = []
        self._at, self._stack, self._copies = start, stack, copies
        self._begin()

    def _begin(self) -> None:
        self._size, self._digest = 0, xxhash.xxh3_128()
        self._copy = f"{self._copies}-{len(self.spans):05d}" if self._copies else ""
        self._sink: BinaryIO | None = None

    def add(self, text: bytes) -> None:
        self._size += len(text)
        self._digest.update(text)
        if text and self._copy:
            self._sink = self._sink or self._stack.enter_context(writing(self._copy))
            self._sink.write(pa.compress(text, codec="zstd", asbytes=True))

    def end(self) -> None:
        if self._size:
            self._stack.close()
            self.spans.append(Span(self._at, self._size, self._digest.hexdigest(), self._copy))
            self._at += self._size
            self._begin()


def beginning(path: str) -> tuple[bytes, int]:
    """Return the decompressed beginning of a file, and the number of bytes read from the file."""
    with file_errors(path), open_file(path) as raw:
        data = io.BytesIO(raw.read(_HEAD))
    source, text = buffered(data), bytearray()
    with suppress(UserError):  # `data` may end within a compressed block
        stream = as_text(source, path)
        while more := stream.read1(_TEXT - len(text)):
            text += more
    # A text that was cut at `_TEXT` must not seem to be the whole file.
    seen = source.tell() - (len(text) == _TEXT)
    if seen == size(path) and text and not text.endswith(b"\n"):
        text += b"\n"
    return bytes(text), seen


def changed(path: str) -> UserError:
    """Return the error about a file that changed during the run."""
    return UserError(
        f"{path}: changed while the run read it; repeat the command to read the file from its start"
    )


def blocks(stream: BinaryIO, rows: int, limit: int) -> Iterator[list[bytes]]:
    """Yield lists of at most `rows` lines, without line ends.

    A line longer than `limit` bytes is cut, and ends with a line feed to mark the cut.
    """
    lines = chain.from_iterable(_split(stream, limit))
    return iter(lambda: list(islice(lines, rows)), [])


def _split(stream: BinaryIO, limit: int) -> Iterator[list[bytes]]:
    rest = b""
    while chunk := stream.read(CHUNK):
        text = rest + chunk
        *lines, rest = text.split(b"\n")
        rest = rest[: limit + 2]  # a cut line exceeds `limit` even without its final CR
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


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn reading errors in the block into a UserError that names the file."""
    try:
        yield
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
