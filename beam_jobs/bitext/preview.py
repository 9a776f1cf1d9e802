"""Preview of a bitext: an estimate of its rows and a few of them, without reading everything."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext.formats import READERS, read_bitext
from paraloom.beam_jobs.bitext.rows import Bitext
from paraloom.models.errors import UserError

_FILES = 20  # files to sample


@dataclass(frozen=True, kw_only=True, slots=True)
class BitextPreview:
    """Contents at the beginnings of some files."""

    pairs: pa.Table  # valid pairs from the beginnings of `files` files
    rows: int  # rows in the whole input
    counted: bool  # True if `rows` is exact, False if it is estimated from file sizes
    rejected: float  # share of invalid rows among the rows read
    files: int


def preview(bitexts: Sequence[Bitext], *, rows: int, max_characters: int) -> BitextPreview:
    """Read about `rows` rows, spread evenly over the files, and count or estimate all rows.

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
