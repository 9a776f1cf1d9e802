"""Files of scores that were computed elsewhere: Parquet, or tab-separated text, plain or gzip."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from paraloom.beam_jobs.io.bitext.files import expand
from paraloom.beam_jobs.io.bitext.lines import file_errors, open_text
from paraloom.beam_jobs.io.schema import CANDIDATE
from paraloom.beam_jobs.io.storage import open_file
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.scorers.elsewhere.numbers import numbers

_PARQUET = b"PAR1"
_WRONG_ROW = re.compile(r"(?:Row #(\d+): )?Expected \d+ columns, got (\d+): (.*)")
_BLOCK = 1 << 20  # bytes of text, which no line may be longer than
_ROWS = 1 << 16  # of Parquet, at once


class ScoreFile(NamedTuple):
    """A file with the values of a score."""

    path: str
    is_parquet: bool
    columns: tuple[int, ...]
    """The positions of the id, of the candidate's number (if the run has candidates) and of the
    value."""
    width: int  # number of all columns
    header: bool  # whether the first line of a text names the columns


def find_score_files(name: str, paths: str | Sequence[str], *, candidates: bool) -> list[ScoreFile]:
    """The files of the score `name` in `score.columns`, from their paths and globs."""
    patterns = paths if isinstance(paths, str) else list(paths)
    found = dict.fromkeys(expand(patterns, f"score.columns.{name}"))
    return [_inspect(path, name, candidates) for path in found]


def read_scores(file: ScoreFile) -> Iterator[tuple[pa.Array, np.ndarray]]:
    """What identifies each row, as `schema.row_ids` gives it (binary [n]), and its value (float32
    [n], NaN where the file has no number), in blocks.
    """
    blocks = _parquet_blocks if file.is_parquet else _text_blocks
    for *ids, values in blocks(file):
        keys = [pc.fill_null(column, b"") for column in ids]
        yield pc.binary_join_element_wise(*keys, b" ") if keys[1:] else keys[0], values


def _inspect(path: str, name: str, candidates: bool) -> ScoreFile:
    with file_errors(path), open_file(path) as stream:
        is_parquet = stream.read(len(_PARQUET)) == _PARQUET
    header = is_parquet
    if is_parquet:
        with _parquet(path) as parquet:
            names = parquet.schema_arrow.names
    else:
        with open_text(path) as text:
            names = text.readline(_BLOCK).rstrip(b"\r\n").decode(errors="replace").split("\t")
        header = "id" in names
        if not header and len(names) in (2, 3):
            names = ["id", *([CANDIDATE.name] if len(names) == 3 else []), "score"]
    wanted = ["id", *([CANDIDATE.name] if candidates else []), name if name in names else "score"]
    if missing := [column for column in wanted if column not in names]:
        value = f"{name} or score" if missing[0] == "score" else missing[0]
        raise UserError(
            f"{path}: lacks the column {value}; it has {', '.join(names)[:200]} (a file without "
            "names of columns has id, value or id, candidate, value, with tabs)"
        )
    if not candidates and CANDIDATE.name in names:
        raise UserError(
            f"{path}: has a column {CANDIDATE.name}, but this run has one translation of each "
            "source (nmt.candidates: 1)"
        )
    positions = tuple(names.index(column) for column in wanted)
    return ScoreFile(path, is_parquet, positions, len(names), header)


def _text_blocks(file: ScoreFile) -> Iterator[list[pa.Array]]:
    names = [f"{i}" for i in range(file.width)]
    with open_text(file.path) as stream:
        if file.header:
            stream.readline()
        if not stream.peek(1):
            return
        try:
            for batch in pacsv.open_csv(
                stream,
                pacsv.ReadOptions(use_threads=False, column_names=names, block_size=_BLOCK),
                pacsv.ParseOptions(delimiter="\t", quote_char=False),
                pacsv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.binary()),
                    include_columns=[names[i] for i in file.columns],
                    check_utf8=False,
                ),
            ):
                *ids, values = batch.columns
                yield [*ids, numbers(values)[0]]
        except pa.ArrowInvalid as error:
            reason = " ".join(str(error).split())
            # Not with `invalid_row_handler`, which fails if the row is not UTF-8.
            if found := _WRONG_ROW.search(reason):
                which = f"{int(found[1]) + file.header:,}" if found[1] else repr(found[3][:100])
                reason = f"row {which} has {found[2]} columns instead of {file.width}"
            elif "straddling" in reason:
                reason = f"a line is longer than {_BLOCK >> 20} MiB"
            raise UserError(f"{file.path}: {reason}") from error


def _parquet_blocks(file: ScoreFile) -> Iterator[list[pa.Array]]:
    with _parquet(file.path) as parquet:
        names = [parquet.schema_arrow.names[i] for i in file.columns]
        for batch in parquet.iter_batches(_ROWS, columns=names):
            *ids, values = (batch[name] for name in names)
            yield [*map(_as_text, ids), _as_numbers(values)]


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    readable = in_one_line(f"{path}: cannot be read as Parquet")
    with file_errors(path), open_file(path) as stream, readable:
        yield pq.ParquetFile(stream, pre_buffer=False)


def _as_text(column: pa.Array) -> pa.Array:
    """The texts of a column, and its whole numbers as texts: binary [n]."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _as_numbers(column: pa.Array) -> np.ndarray:
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return numbers(_as_text(column))[0]
    found = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        return np.asarray(found, np.float32)
