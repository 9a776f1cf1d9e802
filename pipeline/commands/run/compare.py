"""`paraloom compare`: whether two runs hold the same rows and values, or where they part."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.table import Table
from rich.text import Text

from beam_jobs.analysis.diff import ColumnDiff, diff_shards
from beam_jobs.io import storage
from beam_jobs.io.shards import Shard, receipts
from models.errors import UserError
from pipeline.console import console
from pipeline.manifest import Manifest
from pipeline.stage import PAIR_STAGES


@dataclass(slots=True, kw_only=True)
class Compared:
    """One stage of two runs, its rows or those that it rejected.

    Attributes:
        rows: of the first and of the second run; None where the stage is not finished.
        differences: by column; `ROW` stands for rows that only one of them has.
    """

    stage: str
    rejected: bool
    rows: tuple[int | None, int | None]
    differences: dict[str, ColumnDiff] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether both runs have the stage, with the same rows and values."""
        return self.rows[0] == self.rows[1] and not self.differences

    @property
    def name(self) -> str:
        """For people."""
        return self.stage + (", rejected" if self.rejected else "")


def compare(first: str, second: str) -> list[Compared]:
    """Compare two run folders, stage by stage, in the order of the stages, then further rounds.

    How rows are cut into part files and in which order they stand does not count; `id` does.

    Raises:
        UserError: one is no run, or a file of it is missing or damaged.
    """
    stages = [_finished(folder) for folder in (first, second)]
    found = []
    rounds = sorted(set.union(*stages) - set(PAIR_STAGES))
    for stage in (*PAIR_STAGES, *rounds):
        has = [stage in finished for finished in stages]
        if not any(has):
            continue
        sides = [
            _shards(folder, stage) if there else None
            for folder, there in zip((first, second), has, strict=True)
        ]
        for kind, rejected in enumerate((False, True)):
            a, b = (None if side is None else side[kind] for side in sides)
            found.append(
                Compared(
                    stage=stage,
                    rejected=rejected,
                    rows=(_rows(a), _rows(b)),
                    differences=dict(diff_shards(a, b)) if a is not None and b is not None else {},
                )
            )
    return found


def run(first: str, second: str) -> bool:
    """Compare two run folders and print a table; whether they are the same."""
    found = compare(first, second)
    out = console(160)
    out.print(_overview(found))
    if any(stage.differences for stage in found):
        out.print(_values(found))
    parts = [stage.name for stage in found if not stage.same]
    if parts:
        out.print(f"different; the first difference is in {parts[0]}")
    else:
        out.print("same rows and values")
    return not parts


def _finished(folder: str) -> set[str]:
    """The finished stages of pairs of a run, of all rounds (`rounds/2/score`)."""
    stages = Manifest(folder).stages
    finished = {name for name in stages if name.rsplit("/", 1)[-1] in PAIR_STAGES}
    if not finished:
        raise UserError(f"{folder}: no run here that has finished a stage of pairs")
    return finished


def _shards(folder: str, stage: str) -> tuple[list[Shard], list[Shard]]:
    """The part files of a stage: the rows that go on, and the rejected ones."""
    place = storage.join(folder, stage)
    found = receipts(place)
    shards = [shard for receipt in found for shard in receipt.shards]
    account = Manifest(folder).stages[stage]
    if _rows(shards) != account["rows_out"]:
        raise UserError(
            f"{place}: {account['rows_out']:,} rows in the manifest, but {_rows(shards):,} in "
            "receipts/; run the stage again, what is missing is made anew"
        )
    return shards, [shard for receipt in found for shard in receipt.rejected_shards]


def _rows(shards: list[Shard] | None) -> int | None:
    return None if shards is None else sum(shard.rows for shard in shards)


def _overview(found: list[Compared]) -> Table:
    table = Table("stage", title="Rows")
    table.add_column("first run", justify="right")
    table.add_column("second run", justify="right")
    table.add_column("")
    for stage in found:
        counts = ("not finished" if rows is None else f"{rows:,}" for rows in stage.rows)
        table.add_row(
            stage.name, *counts, "same" if stage.same else Text("different", style="bold")
        )
    return table


def _values(found: list[Compared]) -> Table:
    table = Table("stage", "column", title="Where they part: the first rows by id")
    table.add_column("rows", justify="right")
    for name in ("id", "first run", "second run"):
        table.add_column(name, overflow="fold")
    for stage in found:
        for column, difference in stage.differences.items():
            cells = [stage.name, column, f"{difference.rows:,}"]
            for example in difference.examples:
                table.add_row(*cells, *(str(value) for value in example))
                cells = [""] * 3
        table.add_section()
    return table
