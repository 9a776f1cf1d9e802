"""Read scores that other tools computed, from Parquet or tab-separated text."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from paraloom.beam_jobs.bitext.lines import expand, file_errors, open_text
from paraloom.beam_jobs.engine.schema import CANDIDATE
from paraloom.beam_jobs.storage import open_file
from paraloom.models.errors import UserError
from paraloom.models.text.files import PARQUET

_BLOCK = 1 << 20  # bytes of text per block, and the longest line
_ROWS = 1 << 16  # rows of Parquet per batch
_NO_NUMBERS = ["", "nan", "NaN", "-nan", "none", "None", "null", "NULL", "NA", "N/A", "n/a"]


class ScoreFile(NamedTuple):
    """A file with the values of a score."""

    path: str
    is_parquet: bool
    names: list[str] | None  # names of all columns, if a text file has no header
    columns: list[str]  # columns with the id, the candidate's index (if any) and the value


def find_score_files(name: str, paths: str | list[str], *, candidates: bool) -> list[ScoreFile]:
    """Find the files of a score, which `score.columns` names by paths and globs."""
    found = dict.fromkeys(expand(paths, f"score.columns.{name}"))
    return [_inspect(path, name, candidates) for path in found]


def read_scores(file: ScoreFile) -> Iterator[tuple[pa.Array, np.ndarray]]:
    """Yield blocks of identifiers (`schema.row_ids`) and of values (float32, NaN if missing)."""
    with file_errors(file.path):
        for batch in _batches(file):
            *ids, values = (batch[name] for name in file.columns)
            keys = [pc.fill_null(column.cast(pa.string()), "") for column in ids]
            numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            with np.errstate(over="ignore"):
                yield pc.binary_join_element_wise(*keys, " "), numbers.astype(np.float32)


def _inspect(path: str, name: str, candidates: bool) -> ScoreFile:
    row = ["id", CANDIDATE.name] if candidates else ["id"]
    given = None
    with file_errors(path), open_file(path) as stream:
        if is_parquet := stream.read(len(PARQUET)) == PARQUET:
            stream.seek(0)
            names = pq.read_schema(stream).names
    if not is_parquet:
        with open_text(path) as text:
            names = text.readline(_BLOCK).rstrip(b"\r\n").decode(errors="replace").split("\t")
        if "id" not in names and len(names) == len(row) + 1:
            given = names = [*row, "score"]
    columns = [*row, name if name in names else "score"]
    if missing := [column for column in columns if column not in names]:
        value = f"{name} or score" if missing[0] == "score" else missing[0]
        raise UserError(
            f"{path}: lacks the column {value}; it has {', '.join(names)[:200]} (a file without "
            "a header has the tab-separated columns (id, value) or (id, candidate, value))"
        )
    if twice := [column for column in columns if names.count(column) > 1]:
        raise UserError(f"{path}: the column {twice[0]} occurs twice")
    if not candidates and CANDIDATE.name in names:
        raise UserError(
            f"{path}: has a column {CANDIDATE.name}, but this run has one translation of each "
            "source (nmt.candidates: 1)"
        )
    return ScoreFile(path, is_parquet, given, columns)


def _batches(file: ScoreFile) -> Iterator[pa.RecordBatch]:
    if file.is_parquet:
        with open_file(file.path) as stream:
            parquet = pq.ParquetFile(stream, pre_buffer=False)
            yield from parquet.iter_batches(_ROWS, columns=file.columns)
        return
    *ids, value = file.columns
    with open_text(file.path) as stream:
        yield from pacsv.open_csv(
            stream,
            pacsv.ReadOptions(use_threads=False, column_names=file.names, block_size=_BLOCK),
            pacsv.ParseOptions(delimiter="\t", quote_char=False),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(ids, pa.string()) | {value: pa.float64()},
                include_columns=file.columns,
                null_values=_NO_NUMBERS,
            ),
        )
