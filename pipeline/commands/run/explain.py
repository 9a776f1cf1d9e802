"""`paraloom explain`: shows why a pair is selected or rejected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import READERS
from paraloom.beam_jobs.bitext.formats import Moses
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import Shard, read_receipt, read_shard, receipts
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.printing import on_one_line
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, RunFolder, argument, write_json
from paraloom.pipeline.pages.describe import selection_in_words
from paraloom.pipeline.run.folder import as_made, finished, outdated
from paraloom.pipeline.run.records import IngestRecord, RunRecord
from paraloom.pipeline.stages import PAIR_STAGES, folder_of
from paraloom.pipeline.stages.selection import resolve_auto


@dataclass(frozen=True, slots=True)
class Step:
    """The row of a pair in the results of one stage."""

    stage: str
    rejected: bool
    row: dict[str, Any]  # with the column `reason` if the row is rejected
    shard: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The JSON form of `paraloom explain`."""

    run: str
    id: str
    in_corpus: bool  # whether a pair with this id is in the corpus
    selection: str
    steps: list[Step]  # rows of all candidates, in the order of the stages
    outdated: list[str]  # stages that an earlier configuration made


def command(
    run: RunFolder,
    id: Annotated[str, argument("ID", "Id of the pair.")],
    json: JsonFile = None,
) -> None:
    """Print texts, token counts, scores and deciles of a pair, and the reason for a rejection."""
    last = finished(run)
    record = as_made(last).best
    steps = find(run, id, [record.path(name) for name in record.pair_records])
    if not steps:
        raise UserError(f"{run}: no row with the id {id}; see the ids in ingest/part-*.parquet")
    criteria = selection_in_words(resolve_auto(record))
    candidates = {step.row["candidate"] for step in steps if "candidate" in step.row}
    for candidate in sorted(candidates) or [None]:
        way = [step for step in steps if step.row.get("candidate", candidate) == candidate]
        _show(way, criteria)
    if place := _place(run, steps[0], record):
        console().print(place)
    if old := outdated(last):
        names = ", ".join(old)
        console().print(f"an earlier configuration made these outdated stages: {names}")
    selected = any(step.stage == "select" and not step.rejected for step in steps)
    found = Explanation(
        run=run, id=id, in_corpus=selected, selection=criteria, steps=steps, outdated=old
    )
    write_json(json, found)


def _place(folder: str, step: Step, record: RunRecord) -> str:
    """Return the input file of a row, and the number of the row or a range of numbers."""
    read, given = record.find(IngestRecord), record.config.input
    if not given or not read or not read.shard_rows:
        return ""
    _, file, shard = step.shard.split("-")
    files = 2 if isinstance(READERS[given.format], Moses) else 1
    path = read.inputs[int(file) * files].path
    if row := step.row.get("row"):
        return f"from {path}, row {row:,}"
    first, size = int(shard) * read.shard_rows, read.shard_rows
    if not READERS[given.format].skip_empty_lines:  # the last shard of a file may be smaller
        done = receipts(storage.join(folder, "ingest"))
        parts = [part for of in done for part in (*of.shards, *of.rejected_shards)]
        size = sum(part.rows for part in parts if part.name == step.shard) or size
    return f"from {path}, rows {first + 1:,} to {first + size:,}"


def find(folder: str, id: str, stages: Sequence[str] = PAIR_STAGES) -> list[Step]:
    """Return the rows of a pair in `stages`, in order. Stages may belong to derived runs."""
    steps: list[Step] = []
    names: set[str] = set()
    for stage in stages:
        path, found = storage.join(folder, folder_of(stage)), set()
        # A row is in shards of the same name in all stages, so read only these shards.
        named = [receipt for name in sorted(names) if (receipt := read_receipt(path, name))]
        for receipt in named if len(named) == len(names) > 0 else receipts(path):
            for rejected, shards in ((False, receipt.shards), (True, receipt.rejected_shards)):
                for shard in shards:
                    rows = _rows(shard, id)
                    name = stage.rpartition("/")[2]
                    steps += [Step(name, rejected, row, shard.name) for row in rows]
                    found |= {shard.name} if rows else set()
        names = found or names
    return steps


def _rows(shard: Shard, id: str) -> list[dict[str, Any]]:
    wanted = pc.field("id") == id
    if storage.is_remote(shard.path):
        return list(read_shard(shard).filter(wanted).to_pylist())
    # Most shards do not contain the id, so read the column of ids first.
    with in_one_line(f"{shard.path}: cannot be read"), pq.ParquetFile(shard.path) as file:
        there = pc.any(pc.equal(file.read(["id"])["id"], id)).as_py()
        return list(file.read().filter(wanted).to_pylist()) if there else []


def _show(steps: Sequence[Step], criteria: str) -> None:
    out, values = console(), dict[str, Any]()
    for step in steps:
        values |= {} if step.rejected else step.row
    table = number_table(None, "column", numbers=["decile"], after=["value"])
    for name, value in values.items():
        if not name.endswith(schema.decile("")):
            shown = f"{value:.4f}" if isinstance(value, float) else on_one_line(str(value))
            table.add_row(name, str(values.get(schema.decile(name), "")), shown)
    if values:
        out.print(table)
    for step in steps:
        if step.rejected:
            text = f": {step.row['text']}" if "text" in step.row else ""
            out.print(on_one_line(f"rejected by {step.stage}: {step.row['reason']}{text}"))
    last = steps[-1]
    if not last.rejected and last.stage == "select":
        out.print(f"in the corpus: {criteria}")
    elif not last.rejected:
        out.print(f"last stage: {last.stage}; later stages have not run")
