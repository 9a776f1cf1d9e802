"""`paraloom compare`: whether two runs hold the same rows and values, and where they differ."""

from dataclasses import dataclass, field

import typer
from rich.table import Table
from rich.text import Text

from paraloom.beam_jobs.analysis.diff import ColumnDiff, diff_shards
from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import Shard, receipts
from paraloom.beam_jobs.runners.launch import connect
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.options import RunFolder, beam_options
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import PairsRecord
from paraloom.pipeline.report.final_view import current, outdated
from paraloom.pipeline.stage import PAIR_STAGES


@dataclass(slots=True, kw_only=True)
class Comparison:
    """The rows of one stage of two runs, or the rows that it rejected."""

    stage: str
    rejected: bool
    rows: tuple[int | None, int | None]
    """Number in the first and in the second run; None where the stage is not finished."""
    differences: dict[str, ColumnDiff] = field(default_factory=dict)
    """By column; the column `ROW` stands for rows that only one run has."""

    @property
    def same(self) -> bool:
        """Whether both runs have the stage, with the same rows and values."""
        return self.rows[0] == self.rows[1] and not self.differences

    @property
    def name(self) -> str:
        """As printed."""
        return self.stage + (", rejected" if self.rejected else "")


def command(context: typer.Context, first: RunFolder, second: RunFolder) -> None:
    """Rows are matched by id, whatever their order and the part files that hold them.

    The exit code is 0 if the runs are the same, 1 if they differ. Rows are sorted in files in
    TMPDIR.
    """
    connect(beam_options(context), [first, second])
    found = compare(first, second)
    out = console(160)
    out.print(_row_table(found))
    if any(stage.differences for stage in found):
        out.print(_difference_table(found))
    for folder in (first, second):
        if stages := outdated(Manifest(folder).record):
            out.print(f"{folder}: of an earlier configuration, so left out: {', '.join(stages)}")
    different = [stage.name for stage in found if not stage.same]
    if different:
        out.print(f"different; the first difference is in {different[0]}")
        raise typer.Exit(1)
    out.print("same rows and values")


def compare(first: str, second: str) -> list[Comparison]:
    """Compare two run folders stage by stage, in the order of the stages, then further rounds."""
    stages = [_finished(folder) for folder in (first, second)]
    found = []
    rounds = sorted(set.union(*stages) - set(PAIR_STAGES))
    for stage in (*PAIR_STAGES, *rounds):
        sides = [
            _shards(folder, stage) if stage in finished else None
            for folder, finished in zip((first, second), stages, strict=True)
        ]
        if sides == [None, None]:
            continue
        for rejected in (False, True):
            a, b = (None if side is None else side[rejected] for side in sides)
            found.append(
                Comparison(
                    stage=stage,
                    rejected=rejected,
                    rows=(_rows(a), _rows(b)),
                    differences=dict(diff_shards(a, b)) if a is not None and b is not None else {},
                )
            )
    return found


def _finished(folder: str) -> set[str]:
    """The names of a run's finished stages of pairs, in all rounds (`rounds/2/score`).

    Those of earlier configurations do not count.
    """
    stages = current(Manifest(folder).record).stages
    finished = {name for name in stages if name.rsplit("/", 1)[-1] in PAIR_STAGES}
    if not finished:
        raise UserError(f"{folder}: no run here that has finished a stage of pairs")
    return finished


def _shards(folder: str, stage: str) -> tuple[list[Shard], list[Shard]]:
    """The part files of a stage: those of its output, and those of the rejected rows."""
    path = storage.join(folder, stage)
    found = receipts(path)
    shards = [shard for receipt in found for shard in receipt.shards]
    rows, record = sum(shard.rows for shard in shards), Manifest(folder).record
    expected = record.find(PairsRecord, stage) or PairsRecord()
    if rows != expected.rows_out:
        raise UserError(
            f"{path}: {expected.rows_out:,} rows in the manifest, but {rows:,} in receipts/; run "
            "the stage again to repair it"
        )
    return shards, [shard for receipt in found for shard in receipt.rejected_shards]


def _rows(shards: list[Shard] | None) -> int | None:
    return None if shards is None else sum(shard.rows for shard in shards)


def _row_table(found: list[Comparison]) -> Table:
    table = number_table("Rows", "stage", numbers=("first run", "second run"))
    table.add_column("")
    for stage in found:
        counts = ("not finished" if rows is None else f"{rows:,}" for rows in stage.rows)
        table.add_row(
            stage.name, *counts, "same" if stage.same else Text("different", style="bold")
        )
    return table


def _difference_table(found: list[Comparison]) -> Table:
    title = "Differences: the first rows by id"
    table = number_table(title, "stage", "column", numbers=["rows"])
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
