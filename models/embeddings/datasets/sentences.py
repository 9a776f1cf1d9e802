"""Reader of the sentences in Parquet, JSON Lines, CSV, tab-separated text and plain lines."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.models.embeddings.datasets.lines import (
    LINES,
    PARQUET,
    form_of,
    has_rows,
    text_blocks,
    values_of,
)
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import PACKED, distinct_names, own_place
from paraloom.models.hub import fetch_dataset, is_hub_name
from paraloom.models.text.files import is_text
from paraloom.models.text.tokens import UNSPACED_SCRIPTS

Column = tuple[np.ndarray, pa.StringArray]
"""n texts in a block of rows: the index of each text's row, int64 [n], and the texts, [n]."""
Place = tuple[object, ...]  # path to a column: its name or number, and the names of inner fields

_ROWS = 20_000  # rows per block
_WORD = rf"[{UNSPACED_SCRIPTS}]|[^\s{UNSPACED_SCRIPTS}]+"
_WORDS = 3  # minimum median number of words in a column of sentences; names and labels are shorter
_LABEL = r"^(?:\d|[A-Z]{2,6}:[a-z]+) "  # label before the sentence in files of transfer tasks
_NO_DATA = {".md", ".json", ".yaml", ".yml", ".py", ".pdf", ".zip", ".html"}
"""Suffixes of files that are ignored in folders. A JSON file is read if it contains rows."""
_SUFFIXES = re.compile(rf"(\.(tsv|csv|txt|jsonl|parquet))?({PACKED.pattern})?$")
_FALLBACK = "latin-1"  # the encoding of some transfer tasks


class Sentences(NamedTuple):
    """The sentences in a block of rows."""

    rows: np.ndarray  # numbers of the rows in the file, from 1, int64
    columns: list[Column]


def sentence_files(*paths: Path | str) -> dict[str, Path]:
    """Find the files at paths and in folders, and the Parquet files of data sets on the Hub.

    Return files by name. A name has no suffix. Names of files in a given folder begin with the
    folder's name, such as `sts/2012/MSRpar`. Names that are not unique get suffixes or
    parent folders.
    """
    found = list(dict.fromkeys(of for path in paths for of in _named(path)))
    names = distinct_names([names for _, names in found])
    return {name: file for name, (file, _) in zip(names, found, strict=True)}


def _named(path: Path | str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the files at a path with their possible names, the shortest first."""
    if is_hub_name(str(path)):
        key = "select.exclude or --against"
        where, names = fetch_dataset(
            str(path), lambda names, _: [n for n in names if n.endswith(".parquet")], [], key
        )
        for name in names:
            short = name.removesuffix(".parquet")
            yield where / name, tuple(f"{of}/{short}" for of in (str(path).partition("@")[0], path))
        return
    folder, some = Path(path), False
    folder = folder.resolve() if folder.is_dir() else own_place(folder)
    for file in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        parts = file.relative_to(folder.parent).parts
        of_folder = file != folder
        hidden = any(part[0] in "._" for part in parts[1:])  # such as `_rejected`
        other = of_folder and file.suffix in _NO_DATA
        if hidden or file.is_dir() or (other and not (file.suffix == ".json" and has_rows(file))):
            continue
        some = True
        above = range(len(parts), len(file.parts))
        longer = ("/".join(file.parts[-k:]) for k in above)
        yield file, tuple(each for name in longer for each in (_SUFFIXES.sub("", name), name))
    if not some:
        raise UserError(f"{path}: no files with sentences here")


def sentence_blocks(path: Path, names: Sequence[str] = ()) -> Iterator[Sentences]:
    """Yield the columns of a file that contain sentences, in blocks of rows.

    `names` may name these columns in a Parquet file. Without `names`, a column contains sentences
    if the median length of its texts in the first block is at least three words. Each field of a
    struct is a column. In text files, the header is also a row.
    """
    chosen: dict[Place, bool] = {}
    for rows, columns in _blocks(path, names):
        columns = {place: of for place, of in columns.items() if len(of[1])}
        for place in columns.keys() - chosen.keys():
            counts = pc.count_substring_regex(columns[place][1], _WORD)
            chosen[place] = bool(names) or pc.approximate_median(counts).as_py() >= _WORDS
        yield Sentences(rows, [of for place, of in columns.items() if chosen[place]])
    if not names and not any(chosen.values()):
        raise UserError(f"{path}: no column has sentences (three words or more in most rows)")


def _blocks(path: Path, names: Sequence[str]) -> Iterator[tuple[np.ndarray, dict[Place, Column]]]:
    form = form_of(path)
    if form == PARQUET:
        with in_one_line(f"{path}: cannot be read"), pq.ParquetFile(path) as file:
            first = 1
            for batch in file.iter_batches(_ROWS, columns=names or None):
                found: dict[Place, Column] = {}
                for i, column in enumerate(batch.columns):
                    if is_text(column.type) and not pa.types.is_dictionary(column.type):
                        # The cast from binary checks UTF-8.
                        found[i,] = _column(column.cast(pa.binary()).cast(pa.string()))
                    elif re.search("string|binary|extension", str(column.type)):
                        found |= _within(column.to_pylist(), (i,))
                yield np.arange(first, first + len(batch)), found
                first += len(batch)
        return
    if form == LINES:
        for first, lines in _line_blocks(path):
            yield np.arange(first, first + len(lines)), _columns(lines)
        return
    values = values_of(path, _FALLBACK)
    while block := list(islice(values, _ROWS)):
        numbers, rows = zip(*block, strict=True)
        if isinstance(rows[0], dict):
            yield np.array(numbers), _within(rows)
            continue
        cells = (pa.array(column, pa.string()) for column in zip_longest(*rows))
        yield np.array(numbers), {(i,): _column(column) for i, column in enumerate(cells)}


def _line_blocks(path: Path) -> Iterator[tuple[int, pa.StringArray]]:
    first, rest = 1, pa.array([], pa.string())
    for _, text in text_blocks(path, _FALLBACK):
        lines = pc.split_pattern([text.removesuffix("\n")], "\n").values
        lines = pc.replace_substring_regex(lines, "\r$", "") if "\r" in text else lines
        rest = pa.concat_arrays([rest, lines])
        while len(rest) >= _ROWS:
            yield first, rest[:_ROWS]
            first, rest = first + _ROWS, rest[_ROWS:]
    if len(rest):
        yield first, rest


def _columns(lines: pa.StringArray) -> dict[Place, Column]:
    cells = pc.split_pattern(lines, "\t")
    starts, lengths = cells.offsets.to_numpy()[:-1], cells.value_lengths().to_numpy()
    if lengths.max() == 1 and pc.all(pc.match_substring_regex(lines, _LABEL)).as_py():
        return {(0,): _column(pc.replace_substring_regex(lines, _LABEL, ""))}
    found: dict[Place, Column] = {}
    for i in range(lengths.max()):
        rows = np.flatnonzero(lengths > i)
        at, texts = _column(cells.values.take(pa.array(starts[rows] + i)))
        found[i,] = rows[at], texts
    return found


def _column(texts: pa.StringArray) -> Column:
    there = pc.not_equal(texts, "").fill_null(False)
    return np.flatnonzero(there), texts.filter(there)


def _within(values: Sequence[object], place: Place = ()) -> dict[Place, Column]:
    """Return the texts in JSON or Parquet values by place. Bytes without NUL are text, too."""
    found = defaultdict[Place, list[tuple[int, str]]](list)
    for at, value in enumerate(values):
        waiting = [(place, value)]
        while waiting:
            way, of = waiting.pop()
            if isinstance(of, bytes) and b"\0" not in of:
                of = of.decode(errors="replace")
            if isinstance(of, str) and of:
                found[way].append((at, of.encode(errors="replace").decode()))
            elif isinstance(of, list):
                waiting += [((*way, None), inner) for inner in reversed(of)]
            elif isinstance(of, dict | tuple):  # Arrow maps have tuples
                inner = [*(of.items() if isinstance(of, dict) else enumerate(of))]
                waiting += [((*way, name), each) for name, each in reversed(inner)]
    columns = ((way, *zip(*of, strict=True)) for way, of in found.items())
    return {way: (np.array(at), pa.array(of, pa.string())) for way, at, of in columns}
