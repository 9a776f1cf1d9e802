"""The base class of bitext readers: from lines of files to blocks of pairs and rejected rows."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.io.bitext.files import expand
from paraloom.beam_jobs.io.bitext.lines import CHUNK, Span, blocks, open_span, open_text
from paraloom.beam_jobs.io.bitext.rules import Rules, own_id, reason, valid_rows
from paraloom.beam_jobs.io.schema import INGEST, INGEST_REJECTED
from paraloom.models.errors import UserError

Paths = list[str] | dict[str, str | list[str]]
"""`input.paths`: paths and globs, for each side if the format has two files."""

_TEXT = 1_000  # characters of a rejected line that are recorded


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """What `input` says of the columns of its files, and of the files of a data set."""

    columns: Mapping[str, str] = field(default_factory=dict)  # theirs, by ours
    keep: tuple[str, ...] = ()
    languages: tuple[str, str] = ("cs", "en")  # of source and reference, as short codes
    subset: str | None = None
    split: str = "train"


Columns = tuple[tuple[str, ...], tuple[str, ...], pa.Schema]
"""`columns`, `places` and `kept` of a `Bitext`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bitext:
    """What can be read independently: one file, or the two files of a Moses pair."""

    format: str
    paths: tuple[str, ...]
    name: str  # unique in the input, and independent of the folder of the files
    columns: tuple[str, ...] = ()
    """Of its rows, where they are not the same in all files of the format."""
    places: tuple[str, ...] = ()
    """What its file calls `columns`, in a format with names."""
    kept: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The columns that travel with the pairs."""
    sha256: tuple[str, ...] = ()
    """Of the files; if it is given, reading other files ends in an error."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive lines of a bitext."""

    before: int  # number of the lines before them
    lines: int
    spans: tuple[Span, ...]  # of each file


@dataclass(frozen=True, kw_only=True, slots=True)
class RowBlock:
    """Consecutive lines of a bitext; every row among them is in `pairs` or in `rejected`."""

    pairs: pa.RecordBatch  # valid rows (`schema.INGEST`, and kept columns)
    rejected: pa.RecordBatch
    """The other rows (`schema.INGEST_REJECTED`): id (their own or a generated one), 1-based line
    number, beginning of the line (Moses: of both, joined by a tab), reason."""
    lines: np.ndarray  # the 1-based line number of each pair, int64
    rows: int  # lines, without those that only separate documents


class BitextReader:
    """Reads the files of one format; a subclass declares what is particular to the format."""

    name: ClassVar[str]  # the value of `input.format`
    columns: ClassVar[tuple[str, ...]]
    """The tab-separated columns of a line. `reference` is required, and `source` except in plain
    text, where it is empty; without `id`, rows get a generated one. The fields of other columns
    are only validated."""
    skip_empty_lines: ClassVar[bool] = False  # empty lines are not rows
    named: ClassVar[tuple[str, ...]] = ()  # the columns that `input.columns` may name
    by_language: ClassVar[bool] = False  # the languages tell the sides

    @property
    def has_source(self) -> bool:
        """Whether its lines are pairs, and not sentences of one language."""
        return "source" in self.columns

    def group_files(self, paths: Paths, layout: Layout) -> list[tuple[str, ...]]:
        """The files of each bitext in `input.paths`: one each, unless a format overrides this."""
        if isinstance(paths, dict):
            raise UserError(f"input.paths: {self.name} takes a list, not source and reference")
        return [(path,) for path in expand(paths, "input.paths")]

    def describe(self, path: str, layout: Layout) -> Columns:
        """The columns of a file, which is opened; types of kept ones are null if unknown."""
        with open_text(path) as stream:
            columns = self.columns_of(path, stream.readline(CHUNK))
        further = [name for name in columns if name not in INGEST.names]
        for name in layout.keep:
            if name not in further:
                known = ", ".join(further) or "none"
                raise UserError(f"{path}: no column {name} to keep; there are {known}")
        return columns, (), pa.schema([(name, pa.string()) for name in layout.keep])

    def ranges(self, bitext: Bitext, rows: int) -> list[Range] | None:
        """Ranges of at least `rows` rows, except the last; None: it is divided by lines."""
        return None

    def count(self, bitext: Bitext) -> int | None:
        """The rows of a file, if it says so."""
        return None

    def count_in(self, text: bytes) -> int:
        """The rows in the beginning of a file."""
        if not self.skip_empty_lines:
            return text.count(b"\n")
        lines = io.BytesIO(text)  # one at a time: as a list, short lines take 40 times their bytes
        return sum(line.endswith(b"\n") and not line.isspace() for line in lines)

    def line_limit(self, max_characters: int) -> int:
        """Bytes of the longest line that is read: three columns of up to 4 bytes a character, and
        the scores between them.
        """
        return 12 * max_characters + 1_000

    def columns_of(self, path: str, first_line: bytes) -> tuple[str, ...]:
        """The columns of one file, where they are not the same in all files of the format."""
        return self.columns

    def fault(self, line: bytes) -> str | None:
        """Why an invalid line is none of the format's, where its columns would not say it."""
        return None

    def read(
        self, bitext: Bitext, *, rows: int, max_characters: int, part: Range | None = None
    ) -> Iterator[RowBlock]:
        """Read a bitext, or a part of it, in blocks of `rows` lines; the last may be shorter.

        The content of a block depends on the files alone. At most `rows` lines of
        `12 * max_characters` bytes (for each file of a Moses pair) are in memory.

        A truncated, shorter or changed file is only detected at its end: do not publish any block
        before the last one has been read.
        """
        limit = self.line_limit(max_characters)
        before, total = part.before if part else 0, 0
        rules = self._rules(bitext, max_characters)
        with ExitStack() as stack:
            if part:
                files = [open_span(*file) for file in zip(bitext.paths, part.spans, strict=True)]
            else:
                files = [open_text(*file) for file in zip_longest(bitext.paths, bitext.sha256)]
            streams = [stack.enter_context(file) for file in files]
            sides = [blocks(stream, rows, limit) for stream in streams]
            for group in zip_longest(*sides, fillvalue=[]):
                if len({len(lines) for lines in group}) > 1:
                    left = [
                        len(lines) + sum(map(len, rest))
                        for lines, rest in zip(group, sides, strict=True)
                    ]
                    raise different_lengths(bitext, (before + count for count in left))
                block = self._block(bitext, rules, limit, group, before)
                before += len(group[0])
                total += block.rows
                yield block
        if not total and part is None:
            raise UserError(f"{bitext.paths[0]}: no rows")

    def _rules(self, bitext: Bitext, max_characters: int) -> Rules:
        names, keep = bitext.columns or self.columns, tuple(bitext.kept.names)
        return Rules(names=names, max_characters=max_characters, keep=keep)

    def _block(
        self, bitext: Bitext, rules: Rules, limit: int, group: tuple[list[bytes], ...], before: int
    ) -> RowBlock:
        lines = group[0] if len(group) == 1 else list(map(b"\t".join, zip(*group, strict=True)))
        lines, numbers = self._rows(lines, before)
        columns, valid = valid_rows(lines, rules)
        if not self.has_source:
            columns["source"] = pa.repeat("", len(columns["reference"]))
        rejected: list[Rejected] = []
        for row in np.setdiff1d(np.arange(len(lines)), valid, assume_unique=True).tolist():
            number = int(numbers[row])
            if len(group) > 1:  # a tab within a line of one side does not separate columns
                fields = [side[row] for side in group]
                why = reason(fields, rules)
            else:
                fields = lines[row].split(b"\t")
                if lines[row].endswith(b"\n"):  # cut, and columns may be missing
                    why = f"line longer than {limit:,} bytes"
                else:
                    why = self.fault(lines[row]) or reason(fields, rules)
            rejected.append((own_id(fields, rules), number, lines[row], why))
        return row_block(bitext, columns, numbers[valid], rejected)

    def _rows(self, lines: list[bytes], before: int) -> tuple[list[bytes], np.ndarray]:
        """The lines that are rows, and their numbers."""
        numbers = np.arange(before + 1, before + 1 + len(lines))
        if self.skip_empty_lines and not all(lines):
            numbers = numbers[np.fromiter(map(bool, lines), bool, len(lines))]
            lines = [line for line in lines if line]
        return lines, numbers


Rejected = tuple[str | None, int, bytes, str]
"""A rejected row: its own id, if that is valid; number, text, reason."""


def row_block(
    bitext: Bitext, columns: dict[str, pa.Array], numbers: np.ndarray, rejected: Sequence[Rejected]
) -> RowBlock:
    """The block of the valid rows, which get ids if they have none, and the rejected ones."""
    if "id" not in columns:
        digits = pa.array(numbers).cast(pa.string())
        columns["id"] = pc.binary_join_element_wise(bitext.name, digits, ":")
    target = pa.schema([*INGEST, *bitext.kept])
    texts = (text[: 4 * _TEXT].replace(b"\n", b"") for _, _, text, _ in rejected)
    refused = [
        [own or f"{bitext.name}:{number}" for own, number, _, _ in rejected],
        [number for _, number, _, _ in rejected],
        [text.decode(errors="replace")[:_TEXT] for text in texts],
        [why for *_, why in rejected],
    ]
    arrays = map(pa.array, refused, INGEST_REJECTED.types)
    return RowBlock(
        pairs=pa.record_batch([columns[name] for name in target.names], schema=target),
        rejected=pa.record_batch([*arrays], schema=INGEST_REJECTED),
        lines=numbers,
        rows=len(numbers) + len(rejected),
    )


def different_lengths(bitext: Bitext, counts: Iterable[int]) -> UserError:
    """The error for two files of a Moses pair with so many lines."""
    described = (f"{path} has {n:,} lines" for path, n in zip(bitext.paths, counts, strict=True))
    return UserError(" but ".join(described) + "; line n of one must translate line n of the other")
