"""Scores of files, joined with the rows by their ids.

Values are stored sorted by a 128-bit hash of the id, in files that processes map into memory: a
lookup reads little of them, and storing them needs memory for 1/256 of the rows.

    <folder>/first.npy, second.npy   halves of the hashes, uint64 [n]; sorted by both
    <folder>/values.npy              float32 [n]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from paraloom.models.hashing import text_hashes
from paraloom.models.scorers.base import Outcome, Resource, Scorer
from paraloom.models.scorers.plugins import ScorerSource

MISSING = "no value for this id"
SEVERAL = "several values for this id"

_PARTITIONS = 256  # by the highest bits of the first half
_HASHES = ("first", "second")
_ROW = np.dtype([("first", "<u8"), ("second", "<u8"), ("values", "<f4")])


@dataclass(frozen=True)
class ColumnScorer(ScorerSource):
    """A score that is read from files; `files` names them, for the report."""

    files: tuple[str, ...]

    def load(self) -> Scorer:
        """The scorer that looks values up; it does not open anything."""
        shown = ", ".join(self.files[:3])
        more = f" and {len(self.files) - 3} more" if len(self.files) > 3 else ""
        return Scorer(
            function=lambda pairs, columns: columns[self.name].find(pairs.ids),
            meaning=f"computed elsewhere: read from {shown}{more}",
            unit="score",
            range=(None, None),
            reads=("id",),
            resource=Resource(name="columns", open=Columns, remedy="the files of score.columns"),
        )


class Columns(dict[str, "StoredColumn"]):
    """The columns that a folder has, by name; each is mapped into memory when it is first used."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> StoredColumn:
        self[name] = StoredColumn(self._folder / name)
        return self[name]


class StoredColumn:
    """Values by id, of a folder that `store` wrote."""

    def __init__(self, folder: Path) -> None:
        self._first, self._second, self._values = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ROW.names or ()
        )

    def find(self, ids: pa.Array) -> Outcome:
        """The values of n ids, and a reason for each that has none or several."""
        first, second = (text_hashes(ids, seed) for seed in (0, 1))
        order = np.argsort(first)  # neighbours are read together
        start, end = np.empty((2, len(first)), np.int64)
        start[order] = self._first.searchsorted(first[order], "left")
        end[order] = self._first.searchsorted(first[order], "right")
        count = end - start
        single = np.flatnonzero(count == 1)
        count[single] = self._second[start[single]] == second[single]
        for row in np.flatnonzero(count > 1):
            same = self._second[start[row] : end[row]] == second[row]
            start[row] += np.argmax(same)
            count[row] = np.count_nonzero(same)
        values = np.full(len(first), np.nan, np.float32)
        one = count == 1
        values[one] = self._values[start[one]]
        reasons = np.where(one, "", np.where(count, SEVERAL, MISSING)).astype(object)
        return Outcome(values, reasons)


def store(folder: Path, blocks: Iterable[tuple[pa.Array, np.ndarray]]) -> int:
    """Write a column into a new folder; returns the number of its values.

    A block has ids [n] and their values, float32 [n]; every n may differ. The files depend on the
    set of rows alone, not on their order.
    """
    folder.mkdir()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        parts = [Path(scratch, f"{part}") for part in range(_PARTITIONS)]
        rows = 0
        with ExitStack() as stack:
            files = [stack.enter_context(part.open("wb")) for part in parts]
            for ids, values in blocks:
                rows += len(ids)
                _split(ids, values, files)
        with ExitStack() as stack:
            names = _ROW.names or ()
            written = [stack.enter_context((folder / f"{name}.npy").open("wb")) for name in names]
            for name, file in zip(names, written, strict=True):
                header = {"descr": _ROW[name].str, "fortran_order": False, "shape": (rows,)}
                np.lib.format.write_array_header_1_0(file, header)
            for part in parts:
                table = np.fromfile(part, _ROW)
                order = np.lexsort([table[name] for name in reversed(names)])
                for name, file in zip(names, written, strict=True):
                    file.write(table[name][order].tobytes())
    return rows


def _split(ids: pa.Array, values: np.ndarray, files: Sequence[IO[bytes]]) -> None:
    """Append the rows to the files of their partitions."""
    table = np.empty(len(ids), _ROW)
    for seed, name in enumerate(_HASHES):
        table[name] = text_hashes(ids, seed)
    table["values"] = values
    part = (table["first"] >> np.uint64(56)).astype(np.uint8)
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=_PARTITIONS))[:-1]
    for file, rows in zip(files, np.split(table[order], ends), strict=True):
        file.write(rows.tobytes())
