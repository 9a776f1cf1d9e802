"""Scores that other programs computed, looked up by the ids of the pairs.

The values are stored in memory-mapped files, sorted by a 128-bit hash of the id.

    <folder>/first.npy, second.npy   halves of the hashes, uint64 [n]
    <folder>/values.npy              float32 [n]
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePath
from tempfile import TemporaryFile

import numpy as np
import pyarrow as pa

from paraloom.models.hashing import text_hashes
from paraloom.models.scorers.base import Outcome, Resource, Scorer
from paraloom.models.scorers.plugins import ScorerSource

MISSING = "no value for this id"
SEVERAL = "several values for this id"

_PARTITIONS = 256  # partitions by the first byte of a hash; only one of them is in memory at a time
_NAMES = ("first", "second", "values")
_ROW = np.dtype(list(zip(_NAMES, ("<u8", "<u8", "<f4"), strict=True)))


@dataclass(frozen=True)
class ColumnScorer(ScorerSource):
    """A score that is read from files. The report lists `files`."""

    files: str | Sequence[str]

    def load(self) -> Scorer:
        """Create the scorer, which looks up values in the folder that `store` wrote."""
        files = [self.files] if isinstance(self.files, str) else self.files
        shown = ", ".join(PurePath(file).name for file in files)
        return Scorer(
            function=lambda pairs, columns: find(columns / self.name, pairs.ids),
            meaning=f"computed elsewhere: read from {shown}",
            unit="score",
            range=(None, None),
            reads=("id",),
            resource=Resource(name="columns", open=Path, remedy="the files of score.columns"),
        )


def find(folder: Path, ids: pa.Array) -> Outcome:
    """Look up the values of n ids. An id with no value or with several values gets a reason."""
    stored, other, values = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in _NAMES)
    first, second = (text_hashes(ids, seed) for seed in (0, 1))
    order = np.argsort(first)  # faster, because neighbouring values are read together
    start, end = np.empty((2, len(first)), np.int64)
    start[order] = stored.searchsorted(first[order], "left")
    end[order] = stored.searchsorted(first[order], "right")
    found, reasons = np.full(len(first), np.nan, np.float32), np.full(len(first), MISSING, object)
    rows = np.flatnonzero(start < end)
    while len(rows):  # usually once, because first halves of hashes rarely collide
        same = rows[other[start[rows]] == second[rows]]
        reasons[same] = np.where(reasons[same] == MISSING, "", SEVERAL)
        found[same] = values[start[same]]
        start[rows] += 1
        rows = rows[(start[rows] < end[rows]) & (reasons[rows] != SEVERAL)]
    found[reasons != ""] = np.nan
    return Outcome(found, reasons)


def store(folder: Path, blocks: Iterable[tuple[pa.Array, np.ndarray]]) -> int:
    """Write a column into a new folder, and return the number of values. Each block has ids [n] and
    values, float32 [n]. The files do not depend on the order of the rows."""
    folder.mkdir()
    rows, bounds = 0, np.arange(1, _PARTITIONS, dtype=np.uint64) << np.uint64(56)
    with ExitStack() as stack:
        parts = [stack.enter_context(TemporaryFile(dir=folder)) for _ in range(_PARTITIONS)]
        for ids, values in blocks:
            table = np.empty(len(ids), _ROW)
            table["first"], table["second"] = (text_hashes(ids, seed) for seed in (0, 1))
            table["values"] = values
            table = table[np.argsort(table["first"])]
            pieces = np.split(table, table["first"].searchsorted(bounds))
            for part, of in zip(parts, pieces, strict=True):
                part.write(of.tobytes())
            rows += len(ids)
        files = {name: stack.enter_context((folder / f"{name}.npy").open("wb")) for name in _NAMES}
        for name, file in files.items():
            header = {"descr": _ROW[name].str, "fortran_order": False, "shape": (rows,)}
            np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            part.seek(0)
            table = np.fromfile(part, _ROW)
            table = table[np.lexsort([table[name] for name in reversed(_NAMES)])]
            for name, file in files.items():
                file.write(table[name].tobytes())
    return rows
