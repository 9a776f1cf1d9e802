"""The Parquet files of a release: rows divided into two splits, files of limited size."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.transforms.duplicates import normalised, row_hash
from paraloom.models.hashing import text_hashes, threshold
from paraloom.pipeline.cards.data_card_metadata import Configuration, Split

TRAIN, TEST = "train", "test"
FOLDERS = ("data", "pairs")
"""The folders of the configurations `full` and `pairs`."""
PAIRS = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("anchor", "positive")])
"""The columns of the configuration `pairs`: reference and translation, by the names and in the
order that losses of sentence-transformers on pairs expect."""

FILE_ROWS, FILE_BYTES, GROUP_ROWS = 1_000_000, 200_000_000, 100_000
"""A file ends after the row group with which it has so many rows or bytes."""

# Pages end where the content says so: a row more or less changes few of them, and stores that
# divide files by content, such as the Hub's, keep the others. The values are those of `datasets`.
_CHUNKING = {"min_chunk_size": 256 * 1024, "max_chunk_size": 1024 * 1024, "norm_level": 0}


def held_out(references: pa.Array, share: float, seed: int) -> np.ndarray:
    """Which rows are in the split `test`, bool [n]: those whose reference has a small hash.

    References that differ in case and punctuation only have the same hash. It depends on nothing
    else, so a reference stays in its split when the corpus grows.
    """
    return np.asarray(text_hashes(normalised(references), seed) < threshold(share))


def as_pairs(rows: pa.Table) -> pa.Table:
    """The rows of the corpus with the columns of `PAIRS`."""
    return rows.select(["reference", "translation"]).rename_columns(PAIRS.names).cast(PAIRS)


def total_hash(rows: pa.Table) -> np.ndarray:
    """A hash of the rows' ids and texts, uint64 [2]; those of several tables are added up.

    The sum does not depend on the order of rows; it changes if one is missing or is there twice.
    """
    texts = [rows[name].combine_chunks() for name in ("reference", "translation")]
    return np.asarray(row_hash(schema.row_ids(rows), *texts).sum(axis=0, dtype=np.uint64))


class SplitWriter:
    """Writes the rows of a split as `<folder>/<split>-00000-of-00003.parquet`, ….

    The files depend on the rows, not on the tables in which they come.
    """

    def __init__(self, folder: Path, split: str, columns: pa.Schema) -> None:
        self.folder, self.split, self.columns = folder, split, columns
        self.rows = self.memory = 0
        self._files: list[Path] = []
        self._writer: pq.ParquetWriter | None = None
        self._file_rows = 0  # in the file that is open
        self._waiting: list[pa.Table] = []  # less than a row group
        self._waiting_rows = 0

    def write(self, rows: pa.Table) -> None:
        """Add rows."""
        for start in range(0, rows.num_rows, GROUP_ROWS):
            piece = rows.slice(start, GROUP_ROWS)
            missing = GROUP_ROWS - self._waiting_rows
            for part in (piece.slice(0, missing), piece.slice(missing)):
                self._waiting.append(part)
                self._waiting_rows += part.num_rows
                if self._waiting_rows == GROUP_ROWS:
                    self._write_group()

    def finish(self) -> Split:
        """Write what is left, and give the files their names."""
        self._write_group()
        self._end_file()
        names, size = [], 0
        for number, path in enumerate(self._files):
            name = f"{self.split}-{number:05}-of-{len(self._files):05}.parquet"
            named = path.replace(self.folder / name)
            names.append(f"{self.folder.name}/{name}")
            size += named.stat().st_size
        return Split(
            name=self.split, rows=self.rows, files=tuple(names), memory=self.memory, size=size
        )

    def _write_group(self) -> None:
        if not self._waiting_rows:
            return
        rows = pa.concat_tables(self._waiting).combine_chunks()
        writer = self._writer = self._writer or self._open()
        writer.write_table(rows, row_group_size=rows.num_rows)
        self.rows += rows.num_rows
        self.memory += rows.nbytes
        self._file_rows += rows.num_rows
        self._waiting, self._waiting_rows = [], 0
        if self._file_rows >= FILE_ROWS or self._files[-1].stat().st_size >= FILE_BYTES:
            self._end_file()

    def _open(self) -> pq.ParquetWriter:
        self._files.append(self.folder / f"{self.split}-{len(self._files)}.unnamed")
        writer = pq.ParquetWriter(
            self._files[-1],
            self.columns,
            compression="zstd",
            # Dictionaries of distinct texts only take space.
            use_dictionary=[f.name for f in self.columns if not pa.types.is_string(f.type)],
            use_content_defined_chunking=_CHUNKING,
            write_page_index=True,
        )
        writer.add_key_value_metadata({"content_defined_chunking": json.dumps(_CHUNKING)})
        return writer

    def _end_file(self) -> None:
        if self._writer:
            self._writer.close()
        self._writer, self._file_rows = None, 0


def write_configurations(
    folder: Path, tables: Iterable[pa.Table], columns: pa.Schema, share: float, seed: int
) -> tuple[tuple[Configuration, ...], np.ndarray]:
    """Write all rows in the configurations `full` and `pairs`.

    Returns:
        the configurations, with the splits that have rows; and the `total_hash` of all rows.
    """
    full, pairs = (folder / name for name in FOLDERS)
    places = {"full": (full, columns), "pairs": (pairs, PAIRS)}
    for place, _ in places.values():
        place.mkdir()
    writers = {
        name: {split: SplitWriter(place, split, kind) for split in (TRAIN, TEST)}
        for name, (place, kind) in places.items()
    }
    total = np.zeros(2, np.uint64)
    for table in tables:
        total += total_hash(table)
        test = held_out(table["reference"].combine_chunks(), share, seed)
        for split, chosen in ((TRAIN, ~test), (TEST, test)):
            rows = table.filter(pa.array(chosen))
            writers["full"][split].write(rows)
            writers["pairs"][split].write(as_pairs(rows))
    configurations = []
    for name, (place, kind) in places.items():
        splits = [writer.finish() for writer in writers[name].values()]
        configurations.append(
            Configuration(
                name=name,
                folder=place.name,
                columns=kind,
                splits=tuple(split for split in splits if split.rows),
            )
        )
    return tuple(configurations), total
