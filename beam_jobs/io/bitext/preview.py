"""A preview of a bitext: an estimate of its rows, and some of them, without reading all of it."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from beam_jobs.io import storage
from beam_jobs.io.bitext.formats import READERS, read_bitext
from beam_jobs.io.bitext.lines import GZIP, file_errors
from beam_jobs.io.bitext.reader import Bitext

_FILES = 20  # files that are sampled
_HEAD = 1 << 22  # bytes of each


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """What the beginnings of some files contain."""

    pairs: pa.Table  # valid pairs from the beginnings of `files` files
    rows: int  # rows of the whole input
    counted: bool  # True if `rows` is exact, False if it is estimated from the sizes of the files
    rejected: float  # the share of invalid rows among those that were read
    files: int


def preview(bitexts: Sequence[Bitext], *, rows: int, max_characters: int) -> Preview:
    """Read about `rows` rows from files spread evenly over the input, and count or estimate all.

    Raises:
        UserError: see `beam_jobs.io.bitext`.
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
    heads = [_head(bitext) for bitext in chosen]
    lines, seen = (sum(numbers) for numbers in zip(*heads, strict=True))
    size = sum(storage.size(bitext.paths[0]) for bitext in bitexts)
    table = pa.Table.from_batches(pairs)
    return Preview(
        pairs=table,
        rows=lines if seen == size else round(size * lines / seen),
        counted=seen == size,
        rejected=1 - len(table) / max(read, 1),
        files=len(chosen),
    )


def _head(bitext: Bitext) -> tuple[int, int]:
    """Rows in the first bytes of a file (of a Moses pair, the source file), and how many bytes."""
    path = bitext.paths[0]
    with file_errors(path), storage.open_file(path) as raw:
        data = raw.read(_HEAD)
    text = _decompressed(data)
    whole = len(data) == storage.size(path)
    *lines, rest = text.split(b"\n")
    if whole and rest:
        lines.append(rest)
    if READERS[bitext.format].skip_empty_lines:
        lines = [line for line in lines if line.strip()]
    return len(lines), len(data)


def _decompressed(data: bytes) -> bytes:
    pieces = []
    while data.startswith(GZIP):
        member = zlib.decompressobj(31)
        pieces.append(member.decompress(data))
        data = member.unused_data
        if not member.eof:
            return b"".join(pieces)
    return b"".join(pieces) or data
