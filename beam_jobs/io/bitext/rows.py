"""Blocks of pairs and rejected rows out of the lines of a bitext."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_jobs.io.bitext.files import Bitext
from beam_jobs.io.bitext.lines import blocks, open_text
from beam_jobs.io.bitext.rules import Rules, own_id, reason, sound_rows
from beam_jobs.io.schema import INGEST, INGEST_REJECTED
from models.errors import UserError

_COLUMNS = {
    "czeng16": ("id", "score", "source", "reference"),
    "czeng20": ("id", "adq_score", "cs_lang_score", "en_lang_score", "source", "reference"),
    "moses": ("source", "reference"),
}
_TSV = {2: ("source", "reference"), 3: ("id", "source", "reference")}

_TEXT = 1_000  # characters of a rejected line that are kept


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Consecutive lines of a bitext; every row among them is in `pairs` or in `rejected`."""

    pairs: pa.RecordBatch  # schema.INGEST
    rejected: pa.RecordBatch  # schema.INGEST_REJECTED: its own or a made-up id, 1-based line
    #                           number, beginning of the line (Moses: of both, a tab between), why
    lines: np.ndarray  # 1-based line number of each pair, int64
    rows: int  # lines, without the empty ones that separate CzEng 2.0's documents


def read_bitext(
    bitext: Bitext, *, rows: int = 10_000, max_characters: int = 2_000
) -> Iterator[Block]:
    """Read a bitext in blocks of `rows` lines, the last one shorter.

    What a block holds depends on the files alone. At most `rows` lines of `12 * max_characters`
    bytes (for Moses as many of each file) are in memory, however long the lines are.

    >>> for block in read_bitext(bitext):  # doctest: +SKIP
    ...     assert block.rows == block.pairs.num_rows + block.rejected.num_rows

    Raises:
        UserError: see `beam_jobs.io.bitext`. A truncated or a shorter file is found out at its end
            only: do not publish the blocks before the last one has come.
    """
    # Three columns of up to 4 bytes a character, and the scores between them.
    limit = 12 * max_characters + 1_000
    rules: Rules | None = None
    before = 0
    some = False
    with ExitStack() as stack:
        streams = [stack.enter_context(open_text(path)) for path in bitext.paths]
        sides = [blocks(stream, rows, limit) for stream in streams]
        for group in zip_longest(*sides, fillvalue=[]):
            if len({len(lines) for lines in group}) > 1:
                counts = [before + len(lines) for lines in group]
                raise _different_lengths(bitext, counts, sides)
            if rules is None:
                names = _columns(bitext, group[0][0])
                rules = Rules(names=names, max_characters=max_characters)
            block = _block(bitext, rules, limit, group, before)
            before += len(group[0])
            some = some or block.rows > 0
            yield block
    if not some:
        raise UserError(f"{bitext.paths[0]}: no rows")


def _columns(bitext: Bitext, line: bytes) -> tuple[str, ...]:
    if bitext.format != "tsv":
        return _COLUMNS[bitext.format]
    count = line.count(b"\t") + 1
    if count not in _TSV:
        raise UserError(
            f"{bitext.paths[0]}: the first line has {count} column{'s' * (count > 1)}; tsv takes "
            "source, reference or id, source, reference, separated by tabs"
        )
    return _TSV[count]


def _different_lengths(
    bitext: Bitext, counts: list[int], rest: list[Iterator[list[bytes]]]
) -> UserError:
    counts = [n + sum(map(len, side)) for n, side in zip(counts, rest, strict=True)]
    described = (f"{path} has {n:,} lines" for path, n in zip(bitext.paths, counts, strict=True))
    return UserError(" but ".join(described) + "; line n of one must translate line n of the other")


def _block(
    bitext: Bitext, rules: Rules, limit: int, group: tuple[list[bytes], ...], before: int
) -> Block:
    lines = group[0] if len(group) == 1 else list(map(b"\t".join, zip(*group, strict=True)))
    numbers = np.arange(before + 1, before + 1 + len(lines))
    if bitext.format == "czeng20" and not all(lines):
        numbers = numbers[np.fromiter(map(bool, lines), bool, len(lines))]
        lines = [line for line in lines if line]

    columns, sound = sound_rows(lines, rules)
    if "id" not in columns:
        digits = pa.array(numbers[sound]).cast(pa.string())
        columns["id"] = pc.binary_join_element_wise(bitext.name, digits, ":")

    rejected: dict[str, list[str | int]] = {name: [] for name in INGEST_REJECTED.names}
    for row in np.setdiff1d(np.arange(len(lines)), sound, assume_unique=True).tolist():
        line, number = lines[row], int(numbers[row])
        if len(group) > 1:  # a tab within a Moses line separates nothing
            fields = [side[row] for side in group]
            why = reason(fields, rules)
        else:
            fields = line.split(b"\t")
            cut = line.endswith(b"\n")  # and with it, perhaps, columns
            why = f"line longer than {limit:,} bytes" if cut else reason(fields, rules)
        text = line[: 4 * _TEXT].replace(b"\n", b"").decode(errors="replace")[:_TEXT]
        made_up = f"{bitext.name}:{number}"
        rejected["id"].append(own_id(fields, rules) or made_up)
        rejected["row"].append(number)
        rejected["text"].append(text)
        rejected["reason"].append(why)
    return Block(
        pairs=pa.record_batch([columns[name] for name in INGEST.names], schema=INGEST),
        rejected=pa.record_batch(rejected, schema=INGEST_REJECTED),
        lines=numbers[sound],
        rows=len(lines),
    )
