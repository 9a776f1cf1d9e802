"""Writes the two splits of a release to Parquet files of limited size."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.models.hashing import text_hashes, threshold
from paraloom.pipeline.pages.metadata import Configuration, SplitFiles

TRAIN, TEST = "train", "test"
PAIRS = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("anchor", "positive")])
"""The columns of the configuration `pairs`, which losses of sentence-transformers expect."""

FILE_ROWS, FILE_BYTES, GROUP_ROWS = 1_000_000, 200_000_000, 100_000
"""A file ends when a row group (GROUP_ROWS rows) brings it to FILE_ROWS or FILE_BYTES."""

# With content-defined chunks, an added row changes few pages of a file, and the Hub stores only the
# changed pages. The values are the defaults of the library `datasets`.
_CHUNKING = {"min_chunk_size": 256 * 1024, "max_chunk_size": 1024 * 1024, "norm_level": 0}


def held_out(references: pa.Array, share: float, seed: int) -> np.ndarray:
    """Return which rows are in the split `test`: bool [n].

    The split depends on a hash of the reference without case and punctuation. With the same share
    and seed, a reference stays in its split when the corpus grows.
    """
    return np.asarray(text_hashes(normalised(references), seed) < threshold(share))


class SplitWriter:
    """Writes the rows of a split to files such as `<folder>/train-00000-of-00003.parquet`."""

    def __init__(self, folder: Path, split: str, columns: pa.Schema) -> None:
        self.folder, self.split, self.columns = folder, split, columns
        self._files: list[Path] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows = self._file_rows = 0  # number of rows in all files, and in the open file
        self._waiting = columns.empty_table()  # rows of the next row group

    def write(self, rows: pa.Table) -> None:
        """Add rows to the split."""
        self._waiting = pa.concat_tables([self._waiting, rows])
        while self._waiting.num_rows >= GROUP_ROWS:
            self._write_group()

    def finish(self) -> SplitFiles:
        """Write the last rows, and add the number of files to the names of all files."""
        if self._waiting.num_rows:
            self._write_group()
        self._end_file()
        names, size = [], 0
        for number, path in enumerate(self._files):
            name = f"{self.split}-{number:05}-of-{len(self._files):05}.parquet"
            size += path.replace(self.folder / name).stat().st_size
            names.append(f"{self.folder.name}/{name}")
        return SplitFiles(name=self.split, rows=self._rows, files=tuple(names), size=size)

    def _write_group(self) -> None:
        rows = self._waiting.slice(0, GROUP_ROWS).combine_chunks()
        self._waiting = self._waiting.slice(GROUP_ROWS)
        writer = self._writer = self._writer or self._open()
        writer.write_table(rows, row_group_size=rows.num_rows)
        self._rows += rows.num_rows
        self._file_rows += rows.num_rows
        if self._file_rows >= FILE_ROWS or self._files[-1].stat().st_size >= FILE_BYTES:
            self._end_file()

    def _open(self) -> pq.ParquetWriter:
        self._files.append(self.folder / f"{self.split}-{len(self._files)}.unnamed")
        writer = pq.ParquetWriter(
            self._files[-1],
            self.columns,
            compression="zstd",
            # Most texts are distinct, so a dictionary of texts would save no space.
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
) -> tuple[Configuration, ...]:
    """Write the configurations `full` and `pairs`, with about `share` of the rows in `test`."""
    writers = {}
    for place, kind in (("data", columns), ("pairs", PAIRS)):
        (folder / place).mkdir()
        writers[place] = [SplitWriter(folder / place, split, kind) for split in (TRAIN, TEST)]
    for table in tables:
        test = held_out(table["reference"].combine_chunks(), share, seed)
        for number, chosen in enumerate((~test, test)):
            rows = table.filter(pa.array(chosen))
            texts = rows.select(["reference", "translation"]).rename_columns(PAIRS.names)
            writers["data"][number].write(rows)
            writers["pairs"][number].write(texts.cast(PAIRS))
    return tuple(
        Configuration(
            name="full" if place == "data" else place,
            folder=place,
            columns=both[0].columns,
            splits=tuple(split for each in both if (split := each.finish()).rows),
        )
        for place, both in writers.items()
    )
