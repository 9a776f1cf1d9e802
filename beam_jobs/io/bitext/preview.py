"""A preview of a bitext: an estimate of its rows, and some of them, without reading all of it."""

import gzip
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.bitext.formats import READERS, read_bitext
from paraloom.beam_jobs.io.bitext.lines import CorruptError, decompressed, file_errors
from paraloom.beam_jobs.io.bitext.reader import Bitext
from paraloom.models.errors import UserError

_FILES = 20  # files that are sampled
_HEAD = 1 << 22  # bytes of each
_TEXT = 1 << 25  # bytes that they may become: gzip can make a thousand of one


@dataclass(frozen=True, kw_only=True, slots=True)
class BitextPreview:
    """What the beginnings of some files contain."""

    pairs: pa.Table  # valid pairs from the beginnings of `files` files
    rows: int  # rows of the whole input
    counted: bool  # True if `rows` is exact, False if it is estimated from the sizes of the files
    rejected: float  # the share of invalid rows among those that were read
    files: int


def preview(bitexts: Sequence[Bitext], *, rows: int, max_characters: int) -> BitextPreview:
    """Read about `rows` rows from files spread evenly over the input, and count or estimate all.

    Raises:
        UserError: none of the rows that were read can be used.
    """
    step = max(len(bitexts) / _FILES, 1)
    chosen = [bitexts[int(i * step)] for i in range(min(len(bitexts), _FILES))]
    read, pairs = 0, []
    for bitext in chosen:
        block = next(
            read_bitext(bitext, rows=-(-rows // len(chosen)), max_characters=max_characters)
        )
        read += block.rows
        pairs.append(block.pairs)
    table = pa.Table.from_batches(pairs)
    if not len(table):
        raise UserError("input: none of the rows at the beginning of the files can be used")
    heads = [_head(bitext) for bitext in chosen]
    lines, seen = (sum(numbers) for numbers in zip(*heads, strict=True))
    size = sum(storage.size(bitext.paths[0]) for bitext in bitexts)
    return BitextPreview(
        pairs=table,
        rows=lines if seen == size else round(size * lines / seen),
        counted=seen == size,
        rejected=1 - len(table) / max(read, 1),
        files=len(chosen),
    )


def _head(bitext: Bitext) -> tuple[int, int]:
    """Rows in the first bytes of a file (of a Moses pair, the source file), and how many bytes."""
    path, reader = bitext.paths[0], READERS[bitext.format]
    if (rows := reader.count(bitext)) is not None:
        return rows, storage.size(path)
    with file_errors(path), storage.open_file(path) as raw:
        data = raw.read(_HEAD)
    text, seen = _decompressed(data)
    if seen == storage.size(path) and text and not text.endswith(b"\n"):
        text += b"\n"
    return reader.count_in(text), seen


def _decompressed(data: bytes) -> tuple[bytes, int]:
    """The text of the first bytes of a file, not more than `_TEXT`, and how many bytes it is of."""
    source: Any = io.BufferedReader(io.BytesIO(data))
    stream, text = decompressed(source), bytearray()
    with suppress(CorruptError, EOFError, gzip.BadGzipFile):  # it is cut
        while more := stream.read1(_TEXT - len(text)):
            text += more
    waiting = getattr(stream.raw, "waiting", 0) if len(text) == _TEXT else 0
    return bytes(text), source.tell() - waiting
