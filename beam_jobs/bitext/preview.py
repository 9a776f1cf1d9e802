"""Read some pairs from the beginnings of a bitext's files, and estimate the number of rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext.formats import read_bitext, reader_of
from paraloom.beam_jobs.bitext.rows import Bitext
from paraloom.models.errors import UserError

_FILES = 20  # files to sample
# Maximum number of rows in the input -> number of rows per shard
_STEPS = {30_000: 500, 100_000: 1_000, 300_000: 2_000, 1_000_000: 5_000}


@dataclass(frozen=True, kw_only=True, slots=True)
class BitextPreview:
    """What `preview` finds at the beginnings of some files."""

    pairs: pa.Table  # valid pairs from the beginnings of `files` files
    rows: int  # rows in the whole input
    counted: bool  # True if `rows` is exact, False if it is estimated from file sizes
    rejected: float  # share of invalid rows among the rows that were read
    reason: str  # most common reason of invalid rows; "" if there are none
    files: int


def preview(bitexts: Sequence[Bitext], *, rows: int, max_characters: int) -> BitextPreview:
    """Read about `rows` rows in all from at most 20 files, and count or estimate all rows."""
    chosen, read, pairs, reasons = _some(bitexts), 0, [], Counter[str]()
    for bitext in chosen:
        block = next(
            read_bitext(bitext, rows=-(-rows // len(chosen)), max_characters=max_characters)
        )
        read += block.rows
        pairs.append(block.pairs)
        reasons.update(block.rejected["reason"].to_pylist())
    ((reason, _),) = reasons.most_common(1) or [("", 0)]
    table = pa.Table.from_batches(pairs)
    if not len(table):
        more = f" and {len(chosen) - 1} other file(s)" if len(chosen) > 1 else ""
        of = f"{chosen[0].paths[0]}{more}: none of the first {read:,} rows"
        raise UserError(f"{of} can be used; most common reason: {reason}")
    total, counted = _estimate(bitexts)
    return BitextPreview(
        pairs=table,
        rows=total,
        counted=counted,
        rejected=1 - len(table) / max(read, 1),
        reason=reason,
        files=len(chosen),
    )


def rows_per_shard(bitexts: Sequence[Bitext]) -> int:
    """Return a number of rows per shard (500 to 10,000) that suits the size of the input."""
    rows, _ = _estimate(bitexts)
    return next((step for most, step in _STEPS.items() if rows <= most), 10_000)


def _estimate(bitexts: Sequence[Bitext]) -> tuple[int, bool]:
    heads = [reader_of(bitext).estimate(bitext) for bitext in _some(bitexts)]
    lines, seen = (sum(numbers) for numbers in zip(*heads, strict=True))
    size = sum(storage.size(bitext.paths[0]) for bitext in bitexts)
    return lines if seen == size else round(size * lines / seen), seen == size


def _some(bitexts: Sequence[Bitext]) -> list[Bitext]:
    step = max(len(bitexts) / _FILES, 1)
    return [bitexts[int(i * step)] for i in range(min(len(bitexts), _FILES))]
