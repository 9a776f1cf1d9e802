"""`paraloom compare`: compares the rows and values of two runs."""

from collections.abc import Mapping
from math import inf
from typing import Annotated

import typer
from pydantic import BaseModel, computed_field
from pydantic.dataclasses import dataclass

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.diff import ROW, ColumnDiff, diff_shards
from paraloom.beam_jobs.engine.shards import receipts
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, Named, RunFolder, write_json
from paraloom.pipeline.run.folder import current, finished_corpus, outdated, read_run
from paraloom.pipeline.stages import PAIR_STAGES, folder_of


@dataclass(slots=True, kw_only=True)
class Comparison:
    """The accepted or the rejected rows of a stage in two runs."""

    name: str  # name of the stage, followed by ", rejected" for rejected rows
    rows: tuple[int | None, int | None]  # None if a run has not finished the stage
    differences: Mapping[str, ColumnDiff]  # by column, and `ROW` for rows that only one run has
    tolerance: float = 0.0  # floats count as equal up to this difference

    @computed_field  # type: ignore[prop-decorator]
    @property
    def alone(self) -> tuple[int, int]:
        """The numbers of rows that are only in the first run and only in the second run."""
        rows = self.differences[ROW].rows if ROW in self.differences else 0
        more = (self.rows[1] or 0) - (self.rows[0] or 0) if rows else 0
        return (rows - more) // 2, (rows + more) // 2

    @computed_field  # type: ignore[prop-decorator]
    @property
    def same(self) -> bool:
        """Whether both runs have the same rows and values."""
        largest = max((of.largest for of in self.differences.values()), default=0.0)
        return self.rows[0] == self.rows[1] and largest <= self.tolerance


class Comparisons(BaseModel):
    """The JSON form of `paraloom compare`."""

    runs: tuple[str, str]
    same: bool
    stages: list[Comparison]
    outdated: tuple[list[str], list[str]]  # stages of each run that are not compared


def command(
    first: RunFolder,
    second: RunFolder,
    selection: Named = "",
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest difference at which floats count as equal.")
    ] = 0.0,
    json: JsonFile = None,
) -> None:
    """Count removed, added and changed rows, and print examples. Rows are matched by their id.

    The order of rows and their division into files do not matter. Without --selection, all stages
    that make pairs are compared, also in rounds and named selections. Temporary files are written
    to TMPDIR.

    The exit code is 0 if the runs are equal and 1 if they differ. Use --tolerance 1e-5 for runs on
    different processors.
    """
    found, out = compare(first, second, selection), console(160)
    numbers = ("first run", "second run", "removed", "added")
    rows = number_table("Rows", "stage", numbers=numbers, after=[""])
    after = ("id", "first run", "second run")
    values = number_table("Differences", "stage", "column", numbers=["rows"], after=after)
    for stage in found:
        stage.tolerance = tolerance
        counts = ("not finished" if n is None else f"{n:,}" for n in stage.rows)
        moved = (f"{n:,}" if n else "" for n in stage.alone)
        rows.add_row(stage.name, *counts, *moved, "same" if stage.same else "different")
        for column, difference in stage.differences.items():
            cells = [stage.name, column, f"{difference.rows:,}"]
            for example in difference.examples:
                values.add_row(*cells, *map(str, example))
                cells = [""] * 3
    out.print(rows)
    if values.row_count:
        out.print(values)
    stale = outdated(read_run(first)), outdated(read_run(second))
    for folder, stages in zip((first, second), stale, strict=True):
        if stages:
            names = ", ".join(stages)
            out.print(
                f"{folder}: these stages of an earlier configuration are not compared: {names}"
            )
    out.print(_rounding(found), end="")
    different = [stage.name for stage in found if not stage.same]
    same = not different
    write_json(json, Comparisons(runs=(first, second), same=same, stages=found, outdated=stale))
    if different:
        out.print(f"different; the first difference is in {different[0]}")
        raise typer.Exit(1)
    out.print("same rows and values" + (f", floats within {tolerance:g}" if tolerance else ""))


def _rounding(found: list[Comparison]) -> str:
    columns = [(name, of.largest) for stage in found for name, of in stage.differences.items()]
    others = {name for name, largest in columns if largest == inf}
    largest = max((largest for _, largest in columns if largest < inf), default=0.0)
    if not 0 < largest <= 1e-5 or any(n != ROW and not n.endswith("_decile") for n in others):
        return ""
    follow = "; this can also change deciles and the selected rows" if others else ""
    return f"floats differ by up to {largest:.2g}, as can happen between processors{follow}\n"


def compare(first: str, second: str, selection: str = "") -> list[Comparison]:
    """Compare the current stages that make pairs, or only the corpora of a named selection."""
    finished = [_stages(folder, selection) for folder in (first, second)]
    either = set.union(*finished)
    found = []
    for stage in (*(n for n in PAIR_STAGES if n in either), *sorted(either - set(PAIR_STAGES))):
        done = [
            receipts(storage.join(folder, folder_of(stage))) if stage in names else None
            for folder, names in zip((first, second), finished, strict=True)
        ]
        for of, kind in (("shards", ""), ("rejected_shards", ", rejected")):
            one, other = (
                None if side is None else [shard for r in side for shard in getattr(r, of)]
                for side in done
            )
            rows = [None if side is None else sum(s.rows for s in side) for side in (one, other)]
            differences = {} if one is None or other is None else diff_shards(one, other)
            found.append(
                Comparison(name=stage + kind, rows=(rows[0], rows[1]), differences=differences)
            )
    return found


def _stages(folder: str, selection: str) -> set[str]:
    record = read_run(folder)
    if selection:
        return {finished_corpus(folder, record, selection).path("select")}
    found = {name for name in current(record).stages if name.rsplit("/", 1)[-1] in PAIR_STAGES}
    if not found:
        raise UserError(f"{folder}: has no finished stage that makes pairs")
    return found
