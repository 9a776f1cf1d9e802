"""Reader of Parquet files."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.bitext.lines import changed, file_errors
from paraloom.beam_jobs.bitext.reader import Record, RecordReader, columns_of, typed
from paraloom.beam_jobs.bitext.rows import Bitext, Range, RawRows
from paraloom.beam_jobs.storage import known_digest, open_file, size
from paraloom.models.errors import in_one_line
from paraloom.models.text.files import CHUNK, flat, is_text


class Parquet(RecordReader):
    """Parquet files. A dot in a column name refers to a field of a struct.

    A range is read from the beginning of the row group that contains its first row. To limit this
    extra reading, at most one range begins in each row group.
    """

    name = "parquet"

    def head(self, path: str) -> tuple[Sequence[Record], Sequence[str]]:
        """Return a record of example values, or none if the file is empty, and the column names."""
        with _opened(path) as file:
            schema, rows = flat(file.schema_arrow.empty_table()).schema, file.metadata.num_rows
        example = {field.name: _example(field.type) for field in schema}
        return [example] * min(rows, 1), schema.names

    def ranges(self, bitext: Bitext, rows: int, copies: str | None = None) -> list[Range]:
        """Divide a file into ranges of `rows` rows, or more rows if the row groups are larger."""
        with _opened(bitext.paths[0]) as file:
            *starts, total = _starts(file)
        found, before = [], 0
        for row in range(rows, total, rows):
            if starts[_group(starts, row)] > before:
                found.append(Range(before, row - before))
                before = row
        return [*found, Range(before, total - before)]

    def estimate(self, bitext: Bitext) -> tuple[int, int]:
        """Return the number of rows of the file, and the size of the file in bytes."""
        with _opened(bitext.paths[0]) as file:
            return int(file.metadata.num_rows), size(bitext.paths[0])

    def rows(self, bitext: Bitext, rows: int, part: Range, limit: int) -> Iterator[RawRows]:
        """Yield the rows of a part, `rows` at a time. Raise UserError if the file changed."""
        (path,), at = bitext.paths, part.before
        with _opened(path) as file:
            end = min(at + part.lines, file.metadata.num_rows)
            for table in _tables(file, path, bitext.places, (at, end), rows):
                columns, faults = {}, dict[int, str]()
                for name, place, kind in columns_of(bitext):
                    there = place in table.column_names  # the column may be missing in this file
                    leaf = table[place].combine_chunks() if there else pa.nulls(len(table))
                    try:
                        columns[name] = leaf.cast(kind, safe=kind != pa.string())
                    except pa.ArrowInvalid:
                        wrong = {} if bitext.may_lack(name) else faults
                        columns[name] = typed(name, leaf.to_pylist(), kind, wrong)
                numbers = np.arange(at + 1, at + 1 + len(table))
                yield RawRows(columns=columns, numbers=numbers, faults=faults)
                at += len(table)
        if bitext.sha256 and known_digest(path) != bitext.sha256[0]:
            raise changed(path)


@contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    # By default, PyArrow reads whole columns of a row group into memory.
    how = {"buffer_size": CHUNK, "pre_buffer": False}
    with file_errors(path), open_file(path) as stream, pq.ParquetFile(stream, **how) as file:
        yield file


def _starts(file: pq.ParquetFile) -> list[int]:
    groups = range(file.num_row_groups)
    return [0, *accumulate(file.metadata.row_group(group).num_rows for group in groups)]


def _group(starts: list[int], row: int) -> int:
    return int(np.searchsorted(starts, row, "right")) - 1


def _tables(
    file: pq.ParquetFile, path: str, columns: tuple[str, ...], part: tuple[int, int], rows: int
) -> Iterator[pa.Table]:
    (at, end), starts = part, _starts(file)
    groups = range(_group(starts, at), _group(starts, end - 1) + 1)
    batches = file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False)
    waiting, done, begin = None, starts[groups[0]], at
    while at < end:
        size = min(rows, end - at)
        while waiting is None or len(waiting) < size:
            with in_one_line(f"{path}: damaged after row {done:,}"):
                batch = pa.table(next(batches))
            more = flat(batch.slice(max(begin - done, 0)))
            waiting = pa.concat_tables([waiting, more]) if waiting else more
            done += len(batch)
        yield waiting.slice(0, size)
        waiting, at = waiting.slice(size), at + size


def _example(kind: pa.DataType) -> Any:
    """Return an example value of a type, or the type itself if it is not supported."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = {
        "": lambda of: is_text(of) or re.match("(large_|fixed_size_)?binary", str(of)),
        False: pa.types.is_boolean,
        1: pa.types.is_integer,
        0.5: pa.types.is_floating,
        None: pa.types.is_null,
    }
    return next((value for value, is_it in tests.items() if is_it(kind)), kind)
