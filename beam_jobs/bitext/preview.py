"""A preview of a bitext: an estimate of its rows, and some of them, without reading all of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext.formats import READERS, read_bitext
from paraloom.beam_jobs.bitext.rows import Bitext
from paraloom.models.errors import UserError

_FILES = 20  # files that are sampled


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
    heads = [READERS[bitext.format].estimate(bitext) for bitext in chosen]
    lines, seen = (sum(numbers) for numbers in zip(*heads, strict=True))
    size = sum(storage.size(bitext.paths[0]) for bitext in bitexts)
    return BitextPreview(
        pairs=table,
        rows=lines if seen == size else round(size * lines / seen),
        counted=seen == size,
        rejected=1 - len(table) / max(read, 1),
        files=len(chosen),
    )
