"""Vectors and scores of lines, computed in constant memory."""

import codecs
import fcntl
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from paraloom.models.embeddings.applications.evaluation import embed_pairs
from paraloom.models.embeddings.comparison import Compare, Embed, cosines
from paraloom.models.errors import UserError

_BATCH = 8192  # lines
_LONGEST = 1 << 24  # bytes at which a line is rejected or a batch ends


def embed_lines(embed: Embed, lines: IO[bytes], out: BinaryIO) -> None:
    """Write the vectors of UTF-8 lines as a .npy array, float32 [lines, dim]. If `out` is a
    pipe or opened to append, a temporary file is used, because the header is written last."""
    appends = False
    with suppress(OSError):  # a BytesIO, for example, has no file descriptor
        appends = bool(fcntl.fcntl(out, fcntl.F_GETFL) & os.O_APPEND)
    if out.seekable() and out.tell() == 0 and not appends:
        _write_npy(embed, lines, out)
        return
    with tempfile.TemporaryFile() as spool:
        _write_npy(embed, lines, spool)
        spool.seek(0)
        shutil.copyfileobj(spool, out, 1 << 20)
    out.flush()


def similarity_lines(
    embed: Embed, lines: IO[bytes], out: BinaryIO, compare: Compare = cosines
) -> None:
    """For each line of two tab-separated sentences, write a line with their score."""
    count = 0
    for batch in line_batches(lines):
        pairs = [line.split("\t") for line in batch]
        for number, pair in enumerate(pairs, count + 1):
            if len(pair) != 2:
                raise UserError(
                    f"line {number}: {len(pair)} tab-separated columns, expected two sentences"
                )
        first, second = (pa.array(side, pa.string()) for side in zip(*pairs, strict=True))
        for value in compare(*embed_pairs(embed, first, second)):
            out.write(b"%.6f\n" % value)
        count += len(batch)
    out.flush()


def line_batches(lines: IO[bytes]) -> Iterator[list[str]]:
    """Yield batches of lines without line ends (LF or CR LF)."""
    batch, size = list[str](), 0
    for number, line in enumerate(iter(lambda: lines.readline(_LONGEST), b""), 1):
        if len(line) == _LONGEST:
            raise UserError(f"line {number}: longer than {_LONGEST:,} bytes")
        try:
            text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").decode()
        except UnicodeDecodeError as error:
            raise UserError(f"line {number}: not UTF-8") from error
        batch.append(text.removesuffix("\n").removesuffix("\r"))
        size += len(line)
        if len(batch) == _BATCH or size >= _LONGEST:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write_npy(embed: Embed, lines: IO[bytes], out: BinaryIO) -> None:
    """Write the header last, so that NumPy does not read an incomplete file."""
    dim = embed(pa.array([], pa.string())).shape[1]
    out.seek(len(_header(0, dim)))
    count = 0
    for batch in line_batches(lines):
        vectors = embed(pa.array(batch, pa.string()))
        out.write(np.ascontiguousarray(vectors, np.float32).data)
        count += len(batch)
    out.seek(0)
    out.write(_header(count, dim))
    out.flush()
    out.seek(0, os.SEEK_END)


def _header(count: int, dim: int) -> bytes:
    """Return the header of a .npy file. NumPy pads it to the same length for every `count`."""
    stream = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, dim)}
    npy.write_array_header_1_0(stream, header)
    return stream.getvalue()
