"""Sampling of the pairs that people judge.

By default, the pairs are spread evenly over the deciles of each score. All deciles of a score have
the same number of rows. Therefore the share of good pairs in the sample estimates the share of good
pairs in the run. Pairs with equal sides are excluded, because all judges would give them the same
label.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_shard
from paraloom.beam_jobs.transforms.criteria import Criteria, near_misses
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes
from paraloom.pipeline.judging.judgments import Action, PairName
from paraloom.pipeline.run.folder import check_current, current, finished_corpus, shards_of, started
from paraloom.pipeline.run.records import BucketRecord, RunRecord
from paraloom.pipeline.stages import RANKED
from paraloom.pipeline.stages.selection import resolve_auto

_SIDES = ("reference", "translation")
_TEXTS = ("source", *_SIDES)
# No column of an input can have these names.
_HASH, _TURN, _DISTANCE = "(hash)", "(turn)", "(distance)"
_NEXT = 10  # the next pair is chosen among this number of a cell's pairs (see `_cells`)

Rows = npt.NDArray[np.int64]


class Pair(PairName):
    """A pair as the judge sees it, without scores."""

    source: str
    reference: str
    translation: str

    def action(self, **values: Any) -> Action:
        """Return a judge's action on the pair."""
        return Action(**self.model_dump(exclude={"source"}), **values)


class ScoredRun:
    """The pairs of a run after the stage `bucket`, and the names of their scores."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        record = started(folder)
        check_current(folder, record, RANKED, "bucket")
        self.record: RunRecord = current(record)
        self._stage = self.record.best.path(RANKED)
        bucket = self.record.best.find(BucketRecord)
        if bucket is None:
            raise UserError(f"{folder}: its pairs have no deciles yet; run `paraloom bucket` first")
        self.scores = list(bucket.deciles)

    def shards(self, stage: str = "") -> list[Shard]:
        """Return the shards of a stage in order. The default is the stage `bucket`."""
        return shards_of(self.folder, stage or self._stage)

    def tables(self, columns: Sequence[str], stage: str = "") -> Iterator[pa.Table]:
        """Yield each shard as a table with the id, the candidate number and `columns`."""
        for shard in self.shards(stage):
            yield read_shard(shard, list(dict.fromkeys([*schema.ROW, *columns])))


def sample_pairs(run: ScoredRun, pairs: int, *, generators: bool = False) -> list[Pair]:
    """Draw pairs that are spread evenly over the deciles, with the seed of the run.

    A larger sample begins with the pairs of a smaller sample. With `generators`, the pairs are also
    spread evenly over the generators.
    """
    spread = [schema.decile(score) for score in run.scores]
    if generators:
        if run.record.config.generators is None:
            raise UserError(f"--generators: {run.folder} has only one generator")
        spread.append(schema.GENERATOR.name)
    return _pairs(_sample(run.tables([*_TEXTS, *spread]), spread, pairs, run.record.config.seed))


def sample_selection(
    run: ScoredRun, pairs: int, selection: str = "", *, selected: bool
) -> list[Pair]:
    """Draw random pairs of a corpus or, if not `selected`, pairs that just missed the corpus.

    A pair just missed the corpus if it fails exactly one condition of the selection. Pairs nearest
    to the condition's bound are drawn first.
    """
    corpus = finished_corpus(run.folder, started(run.folder), selection)
    view = corpus if selection else run.record.best
    missed = None if selected else resolve_auto(view).criteria()
    return sample_corpus(run, pairs, corpus.path("select"), missed)


def sample_corpus(
    run: ScoredRun, pairs: int, stage: str, missed: Criteria | None = None
) -> list[Pair]:
    """Draw random rows of `stage`, or scored pairs that fail exactly one condition of `missed`."""
    columns = [*_TEXTS, *(missed.columns if missed else ())]
    tables = run.tables(columns, "" if missed else stage)
    return _pairs(sample_rows(tables, missed, pairs, run.record.config.seed))


def sample_rows(
    tables: Iterable[pa.Table], missed: Criteria | None, count: int, seed: int
) -> pa.Table:
    """Draw random rows, or the rows that most narrowly fail exactly one condition of `missed`."""

    def turns() -> Iterator[pa.Table]:
        for table in tables:
            which, away = near_misses(table, missed) if missed else np.zeros((2, len(table)))
            table = table.append_column(_TURN, pa.array(which)).filter(pa.array(which >= 0))
            yield table.append_column(_DISTANCE, pa.array(away[which >= 0]))

    return _sample(turns(), [_TURN], count, seed)


def _sample(tables: Iterable[pa.Table], spread: Sequence[str], count: int, seed: int) -> pa.Table:
    """Draw rows whose sides differ, spread evenly over the values of each column in `spread`."""
    kept: pa.Table | None = None
    for table in tables:
        table = table.filter(pc.not_equal(table["reference"], table["translation"]))
        table = table.append_column(_HASH, pa.array(text_hashes(schema.row_ids(table), seed)))
        kept = _lowest(table if kept is None else pa.concat_tables([kept, table]), spread, count)
    if kept is None:
        return pa.table({})
    return kept.take(pa.array(_in_order(_cells(kept, spread), count), pa.int64()))


def _pairs(table: pa.Table) -> list[Pair]:
    columns = [name for name in (*schema.ROW, *_TEXTS) if name in table.column_names]
    return [Pair(**row) for row in table.select(columns).to_pylist()]


def _lowest(table: pa.Table, spread: Sequence[str], pairs: int) -> pa.Table:
    """Sort rows by distance and hash, drop repeated texts, and keep the first rows of each cell."""
    keys = [name for name in (_HASH, _DISTANCE) if name in table.column_names]
    table = table.take(np.lexsort([table[name].to_numpy() for name in keys]))
    numbered = table.select(_SIDES).append_column("row", pa.array(np.arange(len(table))))
    first = numbered.group_by(list(_SIDES)).aggregate([("row", "min")])["row_min"]
    table = table.take(np.sort(first.to_numpy()))
    chosen = np.zeros(len(table), bool)
    for rows in _cells(table, spread).values():
        chosen[rows[: pairs + _NEXT]] = True
    return table.filter(pa.array(chosen))


def _cells(table: pa.Table, spread: Sequence[str]) -> dict[tuple[str, Any], Rows]:
    """Return the row numbers of each cell. A cell is a column's name and a value of the column."""
    columns = {name: table[name].to_numpy() for name in spread}
    return {
        (name, value): np.flatnonzero(values == value)
        for name, values in columns.items()
        for value in sorted({*values.tolist()})
    }


def _in_order(cells: Mapping[tuple[str, Any], Rows], count: int) -> list[int]:
    """Return row numbers in the order of the sample.

    Each step finds the cell that is furthest behind its share of the chosen rows. Among the first
    rows of this cell, the step chooses the row whose cells are furthest behind in total.
    """
    waiting = {cell: rows.tolist() for cell, rows in cells.items()}
    parts = Counter(name for name, _ in cells)  # number of cells by column
    cells_of: dict[int, list[tuple[str, Any]]] = {}
    for cell, rows in waiting.items():
        for row in rows:
            cells_of.setdefault(row, []).append(cell)
    shown = Counter[tuple[str, Any]]()  # chosen rows of a cell × number of cells of its column
    chosen: list[int] = []
    while len(chosen) < count and any(waiting.values()):
        _, _, fewest = min((shown[cell], rows[0], rows) for cell, rows in waiting.items() if rows)
        row = min(fewest[:_NEXT], key=lambda row: (sum(shown[cell] for cell in cells_of[row]), row))
        for cell in cells_of[row]:
            waiting[cell].remove(row)
        chosen.append(row)
        shown.update({cell: parts[cell[0]] for cell in cells_of[row]})
    return chosen
