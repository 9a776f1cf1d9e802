"""`paraloom explain`: the texts and scores of one pair, and why it is in the corpus or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc
from rich.table import Table
from rich.text import Text

from beam_jobs.io import schema, storage
from beam_jobs.io.shards import Shard, read_shard, receipts
from models.errors import UserError
from pipeline.console import console
from pipeline.manifest import Manifest
from pipeline.report.describe import selected
from pipeline.report.final_view import kept, only, way
from pipeline.stage import PAIR_STAGES


def explain(folder: str, id: str) -> None:
    """Print the way of the pair `id` through the run in `folder`.

    Raises:
        UserError: `folder` is no run, or no stage has seen the id.
    """
    manifest = Manifest(folder)
    if not manifest.stages:
        raise UserError(f"{folder}: no run here that has finished a stage")
    planned = manifest.values.get("planned", manifest.stages)
    record = only({"config": {}, **manifest.values}, planned)
    steps = find(folder, id, way(record["stages"]))
    if not steps:
        raise UserError(f"{folder}: no row with the id {id}; ids stand in ingest/part-*.parquet")
    out = console()
    record = kept(record)
    config = record["config"]
    if "select" in config:
        config = {**config, "select": selected(config["select"], record["stages"])}
    for line in lines(steps, config):
        out.print(line)


def find(
    folder: str, id: str, stages: Sequence[str] = PAIR_STAGES
) -> list[tuple[str, bool, dict[str, Any]]]:
    """The rows with the id, stage by stage: (stage, whether it went on, the row)."""
    found = []
    for stage in stages:
        for receipt in receipts(storage.join(folder, stage)):
            for shard in receipt.shards:
                found += [(stage, True, row) for row in _rows(shard, id)]
            for shard in receipt.rejected_shards:
                found += [(stage, False, row) for row in _rows(shard, id)]
    return found


def lines(way: list[tuple[str, bool, dict[str, Any]]], config: dict[str, Any]) -> list[Any]:
    """What there is to say, as things that rich prints."""
    merged: dict[str, Any] = {}
    for _, went_on, row in way:
        if went_on:
            merged |= row
    said: list[Any] = []
    for name in ("id", "source", "reference", "translation"):
        if name in merged:
            said.append(Text.assemble((f"{name:12}", "bold"), str(merged[name])))
    for name in ("reference_tokens", "translation_tokens", "translation_subwords"):
        if name in merged:
            said.append(Text(f"{name:22}{merged[name]}"))
    deciles = [name for name in merged if name.endswith(schema.decile(""))]
    if deciles:
        table = Table("score", "value", "decile (0 lowest, 9 highest)")
        for column in deciles:
            score = column.removesuffix(schema.decile(""))
            table.add_row(score, f"{merged[score]:.4f}", str(merged[column]))
        said.append(table)
    for stage, went_on, row in way:
        if not went_on:
            text = f": {row['text']}" if "text" in row else ""
            said.append(Text.assemble((f"out at {stage}: ", "bold"), row["reason"], text))
    last_stage, went_on, _ = way[-1]
    if went_on and last_stage == "corpus":
        select = config.get("select", {})
        said.append(Text.assemble(("in the corpus", "bold"), f": it meets {select}"))
    elif went_on:
        said.append(Text(f"got as far as {last_stage}; the stages after it have not run"))
    return said


def _rows(shard: Shard, id: str) -> list[dict[str, Any]]:
    table = read_shard(shard)
    return table.filter(pc.equal(table["id"], id)).to_pylist()
