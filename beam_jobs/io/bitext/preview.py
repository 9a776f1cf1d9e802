"""About how many rows a bitext has, and some of them, without reading all of it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from beam_jobs.io import storage
from beam_jobs.io.bitext.files import Bitext
from beam_jobs.io.bitext.lines import GZIP, blamed
from beam_jobs.io.bitext.rows import read_bitext

_FILES = 20  # that are looked into
_HEAD = 1 << 22  # bytes of each


@dataclass(frozen=True, kw_only=True, slots=True)
class Preview:
    """What a look into the beginnings of files showed.

    Attributes:
        pairs: usable pairs from the beginnings of `files` files.
        rows: of the whole input.
        counted: whether they were all counted, or estimated by the files' sizes.
        rejected: the share of the rows that were read which cannot be used.
    """

    pairs: pa.Table
    rows: int
    counted: bool
    rejected: float
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
    """Lines in the first bytes of a file (the source file of Moses), and how many bytes."""
    path = bitext.paths[0]
    with blamed(path), storage.open_file(path) as raw:
        data = raw.read(_HEAD)
    text = _decompressed(data)
    whole = len(data) == storage.size(path)
    *lines, rest = text.split(b"\n")
    if whole and rest:
        lines.append(rest)
    if bitext.format == "czeng20":  # documents are separated by empty lines
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
