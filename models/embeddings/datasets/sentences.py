"""Sentences of files in any form: Parquet, JSON Lines, tab-separated text, one sentence a line."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice, zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson
import pyarrow.parquet as pq

from paraloom.models.embeddings.datasets.lines import numbered_lines
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.hub import fetch_dataset, is_hub_name
from paraloom.models.text.files import is_parquet, opened
from paraloom.models.text.tokens import UNSPACED_SCRIPTS

_ROWS = 20_000  # of a block
_BLOCK = 1 << 24  # bytes of JSON Lines at once, which no line may be longer than
_WORD = rf"[{UNSPACED_SCRIPTS}]|[^\s{UNSPACED_SCRIPTS}]+"
# Of the middle row of a column of sentences: names, labels, ids and addresses have fewer.
_WORDS = 3
_LABEL = re.compile(r"(?:\d|[A-Z]{2,6}:[a-z]+) ")  # at the beginning of lines of transfer tasks
_NO_DATA = {".md", ".json", ".yaml", ".yml", ".py", ".pdf", ".zip", ".html"}
"""Suffixes of the other files in the folder of a data set."""


def sentence_files(path: Path | str) -> dict[str, Path]:
    """A file, the files in a folder at any depth, or the Parquet files of a data set of the Hub.

    They are by name: the path from the folder on, without suffixes, such as `sts/2012/MSRpar`.
    """
    if is_hub_name(str(path)):
        key = "select.exclude or --against"
        where, names = fetch_dataset(
            str(path), lambda names: [n for n in names if n.endswith(".parquet")], [], key
        )
        repo = str(path).partition("@")[0]
        return {f"{repo}/{name.removesuffix('.parquet')}": where / name for name in names}
    folder = Path(path).resolve()
    files = [folder]
    if folder.is_dir():
        files = [file for file in sorted(folder.rglob("*")) if file.suffix not in _NO_DATA]
    parts = {file: file.relative_to(folder.parent).parts for file in files if not file.is_dir()}
    found = {
        re.sub(r"\.(tsv|csv|txt|jsonl|parquet)?(\.gz)?$", "", "/".join(of)): file
        for file, of in parts.items()
        if not any(part.startswith(".") for part in of[1:])
    }
    if not found:
        raise UserError(f"{path}: no file of sentences here")
    return found


def sentence_blocks(path: Path) -> Iterator[tuple[int, pa.Table]]:
    """The columns of a file that hold sentences, in blocks, with the number of the first row.

    Rows are numbered from 1; a row of text is a line, the one with the names of columns too. A
    column holds sentences if the median of its first block's texts has three words or more.
    """
    names: list[str] = []
    for first, table in _tables(path):
        if not names:
            names = [name for name in table.column_names if _has_sentences(table[name])]
            if not names:
                raise UserError(f"{path}: no column of sentences, with three words in most rows")
        yield first, table.select([name for name in names if name in table.column_names])
    if not names:
        raise UserError(f"{path}: no rows, the file is empty")


def _has_sentences(column: pa.ChunkedArray) -> bool:
    counts = pc.count_substring_regex(column, _WORD).drop_null()
    return len(counts) > 0 and pc.approximate_median(counts).as_py() >= _WORDS


def _tables(path: Path) -> Iterator[tuple[int, pa.Table]]:
    """Blocks of the columns of text in a file, and their first rows."""
    parquet = is_parquet(path)
    with nullcontext(None) if parquet else opened(path) as stream:
        as_json = stream is not None and stream.peek(1).startswith(b"{")
    if parquet or as_json:
        with (
            in_one_line(f"{path}: cannot be read"),
            nullcontext() if parquet else opened(path) as stream,
        ):
            options = pajson.ReadOptions(use_threads=False, block_size=_BLOCK)
            first = 1
            for batch in (
                pq.ParquetFile(path).iter_batches(_ROWS)
                if parquet
                else pajson.open_json(stream, options)
            ):
                table = pa.table(batch).flatten()  # of a column of languages, one for each
                names = [f.name for f in table.schema if _is_text(f.type)]
                yield first, pa.table({n: table[n].cast(pa.string()) for n in names})
                first += len(table)
        return
    lines = numbered_lines(path, fallback="latin-1")  # as some of the transfer tasks
    while block := list(islice(lines, _ROWS)):
        yield block[0][0], _columns([line for _, line in block])


def _is_text(kind: pa.DataType) -> bool:
    of = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _columns(lines: list[str]) -> pa.Table:
    if "\t" in lines[0]:  # a row of STS without a score is no test
        rows = [[] if line.startswith("\t") else line.split("\t") for line in lines]
    else:
        labelled = all(map(_LABEL.match, lines))
        rows = [[_LABEL.sub("", line, count=1) if labelled else line] for line in lines]
    columns = [pa.array(column, pa.string()) for column in zip_longest(*rows)]
    return pa.table(columns, names=[f"{i}" for i in range(len(columns))])
