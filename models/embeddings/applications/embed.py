"""Vectors, scores and nearest neighbours of streams of lines, in constant memory."""

import fcntl
import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from paraloom.models.embeddings.applications.evaluation import embed_pairs
from paraloom.models.embeddings.comparison import Compare, Embed, Rank, cosine_matrix, cosines
from paraloom.models.errors import UserError
from paraloom.models.files import opened
from paraloom.models.printing import visible

_BATCH = 8192  # lines
_LONGEST = 1 << 24  # bytes of a line, and of a batch before its last line


def embed_lines(embed: Embed, lines: IO[bytes], out: BinaryIO) -> None:
    """Write the vectors of UTF-8 lines as one .npy array, float32 [lines, dim].

    A seekable stream (standard output, redirected to a file) becomes a valid .npy with its last
    write. For any other stream (a pipe), the array is copied when it is complete, because its
    header contains the number of lines.
    """
    if _starts_at_zero(out):
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
    """Write one score per line of two tab-separated sentences."""
    count = 0
    for batch in line_batches(lines):
        for value in compare(*embed_pairs(embed, *_pairs(batch, count))):
            out.write(b"%.6f\n" % value)
        count += len(batch)
    out.flush()


def line_batches(lines: IO[bytes], name: str = "") -> Iterator[list[str]]:
    """Lines in batches, without their ends; only a line feed (or CR LF) ends a line."""
    start = 1
    while batch := _some(lines):
        if len(batch[-1]) == _LONGEST:
            number = start + len(batch) - 1
            raise UserError(f"{name}line {number}: longer than {_LONGEST:,} bytes")
        text = b"".join(batch)
        try:
            decoded = text.decode()
        except UnicodeDecodeError as error:
            number = start + text[: error.start].count(b"\n")
            raise UserError(f"{name}line {number}: not UTF-8") from error
        start += len(batch)
        rows = decoded.removesuffix("\n").split("\n")
        yield [row.removesuffix("\r") for row in rows]


def _some(lines: IO[bytes]) -> list[bytes]:
    """The next lines, in bounded memory: the input may have no line ends."""
    batch: list[bytes] = []
    size = 0
    while len(batch) < _BATCH and size < _LONGEST and (line := lines.readline(_LONGEST)):
        batch.append(line)
        size += len(line)
    return batch


def _pairs(batch: list[str], before: int) -> tuple[pa.StringArray, pa.StringArray]:
    pairs = [line.split("\t") for line in batch]
    for number, pair in enumerate(pairs, before + 1):
        if len(pair) != 2:
            raise UserError(
                f"line {number}: {len(pair)} tab-separated columns, expected two sentences"
            )
    first, second = zip(*pairs, strict=True)
    return pa.array(first, pa.string()), pa.array(second, pa.string())


def _write_npy(embed: Embed, lines: IO[bytes], out: BinaryIO) -> None:
    """Write the rows, then the header before them: until then the file is not a valid .npy."""
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
    """The header of a .npy; numpy pads it to the same length for every `count`."""
    stream = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, dim)}
    npy.write_array_header_1_0(stream, header)
    return stream.getvalue()


def _starts_at_zero(out: BinaryIO) -> bool:
    """Whether the header can be written last: not to a pipe, nor after existing content."""
    if not out.seekable() or out.tell() != 0:
        return False
    try:
        return not fcntl.fcntl(out.fileno(), fcntl.F_GETFL) & os.O_APPEND
    except OSError:
        return True  # in memory


class Neighbour(NamedTuple):
    """A sentence of the collection and its similarity to the query."""

    similarity: float
    sentence: str


def nearest(
    embed: Embed,
    sentences: pa.StringArray,
    collection: Iterable[pa.StringArray],
    *,
    count: int = 5,
    rank: Rank = cosine_matrix,
) -> list[list[Neighbour]]:
    """For each sentence, the `count` nearest other sentences of the collection, nearest first.

    `rank` gives the similarities. The collection is compared in blocks, so it may be larger than
    memory. Equal sentences are not neighbours, and duplicates in the collection count once; of
    equal similarities the earlier sentence is preferred.
    """
    queries = embed(sentences)
    texts = sentences.to_pylist()
    best: list[list[Neighbour]] = [[] for _ in texts]
    for block in collection:
        block = block.unique()
        similarities = rank(queries, embed(block))
        for text, row, found in zip(texts, similarities, best, strict=True):
            seen = {text, *(neighbour.sentence for neighbour in found)}
            # One more than requested, because the sentence itself may be among them.
            for i in np.argsort(-row, kind="stable")[: count + 1]:
                if (sentence := block[int(i)].as_py()) not in seen:
                    found.append(Neighbour(float(row[i]), sentence))
            found.sort(key=lambda neighbour: -neighbour.similarity)
            del found[count:]
    return best


def neighbour_lines(
    embed: Embed,
    lines: IO[bytes],
    collection: Path | str,
    out: BinaryIO,
    *,
    count: int = 5,
    rank: Rank = cosine_matrix,
) -> None:
    """Write `sentence <tab> similarity <tab> neighbour` for the sentences in `lines`.

    `collection` is a file with one sentence per line, plain or gzip.
    """
    sentences = [line for batch in line_batches(lines) for line in batch]
    path = Path(collection)
    with opened(path) as stream:
        blocks = (pa.array(batch, pa.string()) for batch in line_batches(stream, f"{path}, "))
        found = nearest(embed, pa.array(sentences, pa.string()), blocks, count=count, rank=rank)
    shown = visible if out.isatty() else str  # what another program reads stays as it is
    for sentence, neighbours in zip(sentences, found, strict=True):
        for similarity, neighbour in neighbours:
            out.write(shown(f"{sentence}\t{similarity:.6f}\t{neighbour}\n").encode())
    out.flush()
