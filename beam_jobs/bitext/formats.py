"""The reader classes of the bitext formats.

To add a format, write a subclass of `BitextReader` here and list it in `_FORMATS`. `input.format`,
the search for files, the preview and `ingest` then support the format.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import BufferedReader, BytesIO
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.bitext import opus
from paraloom.beam_jobs.bitext.hub import Hub
from paraloom.beam_jobs.bitext.lines import expand, file_errors, open_text
from paraloom.beam_jobs.bitext.parquet import Parquet
from paraloom.beam_jobs.bitext.reader import (
    HEAD,
    BitextReader,
    Columns,
    Record,
    RecordReader,
    from_records,
    too_long,
)
from paraloom.beam_jobs.bitext.rows import Bitext, Layout, Paths, Range, RawRows, RowBlock
from paraloom.beam_jobs.bitext.tmx import Tmx
from paraloom.beam_jobs.storage import open_file
from paraloom.models.errors import EmptyFileError, UserError, in_one_line
from paraloom.models.files import PACKED
from paraloom.models.text.files import CHUNK, LONGEST, PARQUET, csv_delimiter, csv_rows, json_object

_SUFFIX = r"\.(jsonl|ndjson|parquet|tmx)$"


class CzEng16(BitextReader):
    """CzEng 1.6: four tab-separated columns."""

    name = "czeng16"
    columns = ("id", "score", "source", "reference")


class CzEng20(BitextReader):
    """CzEng 2.0: six tab-separated columns; empty lines separate documents."""

    name = "czeng20"
    columns = ("id", "adq_score", "cs_lang_score", "en_lang_score", "source", "reference")
    skip_empty_lines = True


class Moses(BitextReader):
    """Two files, in which lines with the same number are translations of each other."""

    name = "moses"
    columns = ("source", "reference")

    def group_files(self, paths: Paths, layout: Layout) -> list[tuple[str, ...]]:
        """Pair the n-th source file with the n-th reference file."""
        if not isinstance(paths, dict) or set(paths) != set(self.columns):
            raise UserError("input.paths: format moses needs {source: …, reference: …}")
        source, reference = (expand(paths[side], f"input.paths.{side}") for side in self.columns)
        if len(source) != len(reference):
            raise UserError(
                "input.paths: the numbers of source and reference files must be equal; "
                f"{paths['source']} matches {len(source)} files, and {paths['reference']} matches "
                f"{len(reference)}"
            )
        return list(zip(source, reference, strict=True))


class Opus(Moses):
    """Corpora of OPUS, named `corpus` or `corpus@version`, which are downloaded into a cache."""

    name = "opus"

    def group_files(self, paths: Paths, layout: Layout) -> list[tuple[str, ...]]:
        """Download the corpora, and return their source and reference files."""
        return [opus.fetch(name, layout.codes) for name in self.listed(paths)]


class Tsv(BitextReader):
    """Tab-separated text with two columns (source, reference) or three (id, source, reference)."""

    name = "tsv"
    columns = ("id", "source", "reference")
    takes = "tsv needs columns (source, reference) or (id, source, reference)"

    def columns_of(self, path: str, first_line: bytes) -> tuple[str, ...]:
        """Return all columns, or only source and reference if the first line has two columns."""
        count = first_line.count(b"\t") + 1
        if count not in (2, 3):
            raise UserError(
                f"{path}: the first line has {count} column{'s' * (count > 1)}; {self.takes}, "
                "separated by tabs"
            )
        return self.columns[-count:]


class ParquetPairs(Parquet):
    """Parquet files with pairs of sentences in one language."""

    def places(self, layout: Layout) -> dict[str, str]:
        """Map each column to its name in the file. The file's `translation` is read as `source`."""
        second = layout.columns.get("translation", "translation")
        return super().places(replace(layout, columns={**layout.columns, "source": second}))


class GivenPairs(Tsv):
    """Pairs of sentences in one language, such as the output of `mine`, in Parquet or TSV."""

    name = "pairs"
    columns = ("margin", "reference", "source")
    takes = "pairs needs columns (reference, translation) or (margin, reference, translation)"
    named = ("reference", "translation", "id")
    is_mined = True
    parquet = ParquetPairs()

    def describe(self, path: str, layout: Layout) -> Columns:
        """Return the columns of a Parquet or TSV file."""
        with file_errors(path), open_file(path) as raw:
            if raw.read(len(PARQUET)) == PARQUET:
                return self.parquet.describe(path, layout)
        if layout.columns:
            raise UserError(f"{path}: is not Parquet, so input.columns cannot be set for it")
        return super().describe(path, layout)


class PlainText(BitextReader):
    """Sentences in one language. They become references, which `pivot` translates into sources."""

    name = "text"
    columns = ("reference",)


class JsonLines(RecordReader):
    """JSON Lines: one object per line. Dots in a column name refer to fields of nested objects."""

    name = "jsonl"
    skip_empty_lines = True

    def line_limit(self, max_characters: int) -> int:
        """Return the maximum size of a line in bytes. An escaped character has up to 12 bytes."""
        return 36 * max_characters + 30_000

    def head(self, path: str) -> tuple[Sequence[Record], Sequence[str]]:
        """Return the objects in the first lines, and the names in the first object."""
        with open_text(path) as stream:
            text, is_whole = stream.read(CHUNK), not stream.peek(1)
        lines = text.split(b"\n")[:HEAD]
        records = [record for line in lines if (record := json_object(line))]
        if is_whole and not text.strip():
            return [], []
        if not records:
            raise UserError(f"{path}: none of the first lines is a JSON object")
        return records, list(_names(records[0]))

    def parse(
        self, bitext: Bitext, group: Sequence[list[bytes]], numbers: np.ndarray, limit: int
    ) -> RawRows:
        """Parse the objects in some lines."""
        (lines,), objects = group, [*map(json_object, group[0])]
        no = {row: "no JSON object" for row, record in enumerate(objects) if record is None}
        found = from_records(bitext, [of or {} for of in objects], numbers, no)
        return replace(found, texts=lines, faults=found.faults | too_long(lines, limit))


class Csv(RecordReader):
    """CSV with a header row, separated by commas, semicolons or tabs, and quoted by `"`."""

    name = "csv"

    def head(self, path: str) -> tuple[Sequence[Record], Sequence[str]]:
        """Return the first rows, and the names of all columns."""
        with open_text(path) as stream:
            found = list(islice(_csv_rows(stream), HEAD))
        if not found:
            return [], []
        (_, names, fault), *rows = found
        if fault:
            raise UserError(f"{path}: the first row must name the columns: {fault}")
        return [dict(zip(names, row, strict=False)) for _, row, _ in rows], names

    def ranges(self, bitext: Bitext, rows: int, copies: str | None = None) -> list[Range]:
        """Return a range of the whole file, because quoted text may contain line feeds."""
        return [Range(0, sum(of.lines for of in super().ranges(bitext, rows)))]

    def count_in(self, text: bytes) -> int:
        """Count the rows without the header."""
        return sum(1 for _ in _csv_rows(BytesIO(text))) - 1

    def rows(self, bitext: Bitext, rows: int, part: Range, limit: int) -> Iterator[RawRows]:
        """Yield the rows of a file, `rows` at a time."""
        with open_text(bitext.paths[0], *bitext.sha256) as stream:
            found = _csv_rows(stream)
            _, names, _ = next(found)
            while block := list(islice(found, rows)):
                numbers, values, faults = zip(*block, strict=True)
                why = {row: fault for row, fault in enumerate(faults) if fault}
                records = [dict(zip(names, of, strict=False)) if of[1:] else {} for of in values]
                texts = ["\t".join(of).encode(errors="surrogateescape") for of in values]
                yield replace(from_records(bitext, records, np.array(numbers), why), texts=texts)


def _csv_rows(stream: BufferedReader | BytesIO) -> Iterator[tuple[int, list[str], str]]:
    raw = iter(lambda: stream.readline(LONGEST), b"")
    first = next(raw, b"")
    delimiter = csv_delimiter(first, named=True) or ","
    lines = (line.decode(errors="surrogateescape") for line in chain([first], raw))
    return csv_rows(lines, delimiter)


def _names(record: Record, prefix: str = "") -> Iterable[str]:
    for name, value in record.items():
        inner = isinstance(value, dict) and value
        yield from _names(value, f"{prefix}{name}.") if inner else [f"{prefix}{name}"]


_FORMATS: tuple[type[BitextReader], ...] = (
    Csv,
    CzEng16,
    CzEng20,
    Hub,
    JsonLines,
    Moses,
    Opus,
    GivenPairs,
    Parquet,
    PlainText,
    Tmx,
    Tsv,
)

READERS = {reader.name: reader() for reader in _FORMATS}
"""The reader of each format, by its name in `input.format`."""

if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[tuple(READERS)]  # validates `input.format`


def find_bitext(format: Format, paths: Paths, layout: Layout | None = None) -> list[Bitext]:
    """Find the files that paths and globs match, and check that each file can be opened.

    The matches of a glob are sorted. A file that several globs match is read once.

    >>> find_bitext("moses", {"source": "data/*.cs.gz", "reference": "data/*.en.gz"})
    ... # doctest: +SKIP
    [Bitext(format='moses', paths=('data/train.cs.gz', 'data/train.en.gz'), name='1-train.cs', …)]
    """
    reader, found, layout = READERS[format], list[Bitext](), layout or Layout()
    units = dict.fromkeys(reader.group_files(paths, layout))
    for position, unit in enumerate(units, start=1):
        first, *others = unit
        try:
            columns, places, kept = reader.describe(first, layout)
        except EmptyFileError:
            if not all(map(_is_empty, others)) or (position == len(units) and not found):
                raise
            continue
        for path in others:
            with open_text(path):
                pass
        name = re.sub(_SUFFIX, "", PACKED.sub("", first.rsplit("/", 1)[-1]))
        name = f"{position}-" + re.sub(r"[^\w.-]", "_", name)
        one = Bitext(format=format, paths=unit, name=name, columns=columns, places=places)
        found_ids = bool(places) and "id" not in layout.columns
        found.append(replace(one, kept=kept, clean=layout.clean, ids_found=found_ids))
    with in_one_line("input.keep: a column has different types in different files"):
        kept = pa.unify_schemas([of.kept for of in found], promote_options="permissive")
    for name in (field.name for field in kept if field.type == pa.null()):
        raise UserError(
            f"input.keep: {name}: no text or number in the first rows of {found[0].paths[0]}"
        )
    return [replace(bitext, kept=kept) for bitext in found]


def _is_empty(path: str) -> bool:
    try:
        with open_text(path):
            return False
    except EmptyFileError:
        return True


def reader_of(bitext: Bitext) -> BitextReader:
    """Return the reader of a bitext. The format `pairs` has a separate reader for Parquet."""
    reader = READERS[bitext.format]
    return reader.parquet if isinstance(reader, GivenPairs) and bitext.places else reader


def find_ranges(bitext: Bitext, lines: int, copies: str | None = None) -> list[Range]:
    """Divide a bitext into ranges of `lines` lines if possible (see `BitextReader.ranges`)."""
    return reader_of(bitext).ranges(bitext, lines, copies)


def read_bitext(
    bitext: Bitext, *, rows: int = 10_000, max_characters: int = 2_000, part: Range | None = None
) -> Iterator[RowBlock]:
    """Read a bitext, or a part of it (see `BitextReader.read`)."""
    reader = reader_of(bitext)
    return reader.read(bitext, rows=rows, max_characters=max_characters, part=part)
