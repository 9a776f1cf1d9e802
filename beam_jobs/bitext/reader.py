"""Base classes of bitext readers, for lines and for records with named fields."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.bitext.lines import beginning, blocks, expand, index, open_span, open_text
from paraloom.beam_jobs.bitext.rows import Bitext, Layout, Paths, Range, RawRows, RowBlock, checked
from paraloom.beam_jobs.engine.schema import INGEST
from paraloom.models.errors import EmptyFileError, UserError
from paraloom.models.text.files import CHUNK, text_array

HEAD = 1_000  # number of rows from which column types are inferred

Columns = tuple[tuple[str, ...], tuple[str, ...], pa.Schema]
"""The attributes `columns`, `places` and `kept` of a `Bitext`."""
Record = Mapping[str, Any]


class BitextReader:
    """Base class of readers. To add a format, subclass `BitextReader` or `RecordReader`."""

    name: ClassVar[str]  # the value of `input.format`
    columns: ClassVar[tuple[str, ...]]
    """Column names: one per tab-separated field of a line, in order, or one per file.

    Only plain text may lack `source`. If there is no `id`, ids are made from the texts.
    """
    skip_empty_lines: ClassVar[bool] = False  # True if empty lines are not rows
    named: ClassVar[tuple[str, ...]] = ()  # columns that `input.columns` may rename
    by_language: ClassVar[bool] = False  # True if the file names the language of each sentence
    is_mined: ClassVar[bool] = False  # True for pairs of one language, which are not translated

    @property
    def has_source(self) -> bool:
        """Whether rows are pairs of sentences rather than single sentences."""
        return "source" in self.columns

    def group_files(self, paths: Paths, layout: Layout) -> list[tuple[str, ...]]:
        """Return the paths of each bitext. By default, a bitext has one file."""
        return [(path,) for path in expand(self.listed(paths), "input.paths")]

    def listed(self, paths: Paths) -> list[str]:
        """Return `input.paths`. Raise UserError if it is a mapping or is empty."""
        if isinstance(paths, dict):
            raise UserError(
                f"input.paths: format {self.name} needs a list, not source and reference"
            )
        if not paths:
            raise UserError("input.paths: names no file")
        return paths

    def describe(self, path: str, layout: Layout) -> Columns:
        """Return the columns of a file. Kept columns have the type string."""
        with open_text(path) as stream:
            columns = self.columns_of(path, stream.readline(CHUNK))
        further = [name for name in columns if name not in INGEST.names]
        for name in layout.keep:
            if name not in further:
                known = ", ".join(further) or "none"
                raise UserError(f"{path}: no column {name} to keep; further columns: {known}")
        return columns, (), pa.schema([(name, pa.string()) for name in layout.keep])

    def columns_of(self, path: str, first_line: bytes) -> tuple[str, ...]:
        """Return the column names of a file. Override this if files may have different columns."""
        return self.columns

    def ranges(self, bitext: Bitext, rows: int, copies: str | None = None) -> list[Range]:
        """Divide a bitext into ranges of `rows` lines if possible (see `index` for `copies`)."""
        files = enumerate(zip_longest(bitext.paths, bitext.sha256))
        indexed = (index(*file, rows, copies and f"{copies}-{i}") for i, file in files)
        counts, spans = zip(*indexed, strict=True)
        if len(set(counts)) > 1:
            sides = zip(bitext.paths, counts, strict=True)
            found = " but ".join(f"{path} has {n:,} lines" for path, n in sides)
            raise UserError(f"{found}; {_LINE_BY_LINE}")
        total = counts[0]
        if not all(spans):
            return [Range(0, total)]
        return [
            Range(before, min(rows, total - before), of)
            for before, of in zip(range(0, total, rows), zip(*spans, strict=True), strict=True)
        ]

    def estimate(self, bitext: Bitext) -> tuple[int, int]:
        """Count the rows in the beginning of the first file, and the bytes that were read."""
        text, size = beginning(bitext.paths[0])
        return self.count_in(text), size

    def count_in(self, text: bytes) -> int:
        """Return the number of rows in a text."""
        if not self.skip_empty_lines:
            return text.count(b"\n")
        return sum(1 for _ in re.finditer(rb"^.*\S.*\n", text, re.MULTILINE))

    def line_limit(self, max_characters: int) -> int:
        """Return the maximum size of a line in bytes: 3 texts of 4-byte characters, and scores."""
        return 12 * max_characters + 1_000

    def read(
        self, bitext: Bitext, *, rows: int, max_characters: int, part: Range | None = None
    ) -> Iterator[RowBlock]:
        """Read a bitext, or a part of it, in blocks of at most `rows` rows or lines.

        Do not publish rows before the last block is read, as the end of a file may reveal damage.
        """
        part = part or Range(0, sys.maxsize)
        for block in self.rows(bitext, rows, part, self.line_limit(max_characters)):
            yield checked(bitext, block, max_characters)

    def rows(self, bitext: Bitext, rows: int, part: Range, limit: int) -> Iterator[RawRows]:
        """Yield a part's rows in blocks of `rows` lines. A line over `limit` bytes is a fault."""
        before = part.before
        with ExitStack() as stack:
            if part.spans:
                files = [open_span(*file) for file in zip(bitext.paths, part.spans, strict=True)]
            else:
                files = [open_text(*file) for file in zip_longest(bitext.paths, bitext.sha256)]
            sides = [blocks(stack.enter_context(file), rows, limit) for file in files]
            for group in zip_longest(*sides, fillvalue=[]):
                lines, *others = group
                if any(len(side) != len(lines) for side in others):
                    raise UserError(
                        f"{' and '.join(bitext.paths)} differ in length; {_LINE_BY_LINE}"
                    )
                numbers = np.arange(before + 1, before + 1 + len(lines))
                before += len(lines)
                if self.skip_empty_lines and not all(lines):
                    numbers = numbers[np.fromiter(map(bool, lines), bool, len(lines))]
                    group = ([line for line in lines if line],)
                yield self.parse(bitext, group, numbers, limit)

    def parse(
        self, bitext: Bitext, group: Sequence[list[bytes]], numbers: np.ndarray, limit: int
    ) -> RawRows:
        """Parse a list of lines from each file of the bitext."""
        names, (lines, *others) = bitext.columns or self.columns, group
        texts = list(map(b"\t".join, zip(*group, strict=True))) if others else lines
        faults = {row: why for side in group for row, why in too_long(side, limit).items()}
        if not others:
            faults |= {row: "empty line" for row, line in enumerate(lines) if not line}
        if len(names) == len(group):
            columns = [pa.array(side, pa.binary()) for side in group]
        else:
            fields = pc.split_pattern(pa.array(lines, pa.binary()), "\t")
            counts = pc.list_value_length(fields).to_numpy()
            wrong = counts != len(names)
            for row in np.flatnonzero(wrong).tolist():
                n = int(counts[row])
                faults.setdefault(row, f"{n} column{'s' * (n > 1)} instead of {len(names)}")
            starts = fields.offsets.to_numpy()[:-1]
            masks = [counts < 2 if name == "id" else wrong for name in names]  # the id is first
            at = [pa.array(starts + i, mask=mask) for i, mask in enumerate(masks)]
            columns = [fields.values.take(of) for of in at]
        found = dict(zip(names, columns, strict=True))
        return RawRows(columns=found, numbers=numbers, texts=texts, faults=faults)


_LINE_BY_LINE = "line n of one file must be a translation of line n of the other file"


def too_long(lines: Sequence[bytes], limit: int) -> dict[int, str]:
    """Return a fault for each line that `blocks` has cut, by row."""
    cut = (row for row, line in enumerate(lines) if line.endswith(b"\n"))
    return dict.fromkeys(cut, f"line longer than {limit:,} bytes")


_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


class RecordReader(BitextReader):
    """Base class of readers for records with named fields, which `input.columns` may rename."""

    columns = ("id", "source", "reference")
    named: ClassVar[tuple[str, ...]] = ("source", "reference", "id")
    remedy: ClassVar[str] = "name the columns in input.columns"
    id_place: ClassVar[str] = "id"  # default name of the id column in files

    def head(self, path: str) -> tuple[Sequence[Record], Sequence[str]]:
        """Return the first records of a file, and the names of all columns."""
        raise NotImplementedError

    def places(self, layout: Layout) -> dict[str, str]:
        """Map each column, including kept columns, to its name in the file."""
        names = {name: name for name in (*self.columns, *layout.keep)}
        return {**names, "id": self.id_place, **layout.columns}

    def describe(self, path: str, layout: Layout) -> Columns:
        """Check that the first records have the columns, and infer the types of kept columns.

        The column `id` may be missing if `input.columns` does not name it. A kept column without
        values has the type null.
        """
        places, used, kept = self.places(layout), {}, []
        records, known = self.head(path)
        if not records:
            raise EmptyFileError(f"{path}: no rows, the file is empty")
        for name, place in places.items():
            if known.count(place) > 1:
                raise UserError(f"{path}: the column {place} occurs twice")
            values = (_find(record, place) for record in records)
            types = (of if isinstance(of, pa.DataType) else type(of) for of in values)
            kinds = list(dict.fromkeys(kind for kind in types if kind is not type(None)))
            kinds = [kind for kind in kinds if kind in _TYPES] or kinds
            ours = {str, int} if name == "id" else {str}
            if name == "id" not in layout.columns and not ours & {*kinds}:
                continue
            kind = _TYPES.get(kinds[0]) if kinds else pa.null()
            if kind == pa.int64() and float in kinds:
                kind = pa.float64()
            if not kinds and name in self.columns and place not in known:
                names = ", ".join(known) or "nothing"
                lack = f"{path}: the first rows have no {place}, only {names}"
                raise UserError(f"{lack}; {self.remedy}")
            if name in self.columns and kinds and not ours & {*kinds}:
                kind = None
            if kind is None:
                found = " and ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
                wanted = "" if name in self.columns else "; convert them to text or numbers"
                raise UserError(f"{path}: {place} has values of type {found}{wanted}")
            used[name] = place
            if name in layout.keep:
                kept.append((name, kind))
        return (*used,), (*used.values(),), pa.schema(kept)


def from_records(
    bitext: Bitext, records: Sequence[Record], numbers: np.ndarray, faults: dict[int, str]
) -> RawRows:
    """Convert records to rows, and add a fault for each value with the wrong type.

    An id with the wrong type is no fault if the column of ids may have gaps.
    """
    columns = {}
    for name, place, kind in columns_of(bitext):
        wrong = {} if bitext.may_lack(name) else faults
        columns[name] = typed(name, (_find(record, place) for record in records), kind, wrong)
    return RawRows(columns=columns, numbers=numbers, faults=faults)


def typed(name: str, values: Iterable[Any], kind: pa.DataType, faults: dict[int, str]) -> pa.Array:
    """Build a column from Python values, and add a fault for each value that is not of `kind`."""
    found = []
    for row, value in enumerate(values):
        if type(value) is int:
            if name == "id":
                value = str(value)
            elif kind == pa.float64() and value.bit_length() < 1024 and float(value) == value:
                value = float(value)
        large = type(value) is int and value not in range(-(2**63), 2**63)
        if value is not None and (large or _TYPES.get(type(value)) != kind):
            faults.setdefault(row, f"{name} is not of type {kind}")
            value = None
        found.append(value)
    return text_array(found) if kind == pa.string() else pa.array(found, kind)


def columns_of(bitext: Bitext) -> Iterable[tuple[str, str, pa.DataType]]:
    """Yield the name of each column of a bitext, its name in the file, and its type."""
    kept = {field.name: field.type for field in bitext.kept}
    for name, place in zip(bitext.columns, bitext.places, strict=True):
        yield name, place, kept.get(name, pa.string())


def _find(record: Record, place: str) -> Any:
    if place in record or "." not in place:
        return record.get(place)
    found: Any = record
    for part in place.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
