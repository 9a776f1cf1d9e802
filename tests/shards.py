"""Tables cut into shards, as jobs read them, and the rows that a job leaves."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from paraloom.beam_jobs.io.shards import Shard, read_shard, write_shard
from paraloom.beam_jobs.runners.launch import Result

ONE = ["--direct_num_workers", "1"]


def cut(folder: Path | str, table: pa.Table, rows: int) -> list[Shard]:
    """Shards of so many rows each; one without rows of an empty table."""
    return [
        write_shard(f"{folder}/part-00000-{n:05d}.parquet", table.slice(start, rows))
        for n, start in enumerate(range(0, max(len(table), 1), rows))
    ]


def filled(rows: list[dict[str, Any]], form: pa.Schema) -> pa.Table:
    """Pairs with these values; those of other columns are all the same, but for the ids."""
    texts = {name: f"a {name}" for name in ("source", "reference", "translation")}
    others = {**dict.fromkeys(form.names, 0), **texts, "translation_score": -0.5}
    same = {name: value for name, value in others.items() if name in form.names}
    return pa.Table.from_pylist(
        [{**same, "id": f"id-{i}", **row} for i, row in enumerate(rows)], form
    )


def shards_of(result: Result, *, rejected: bool = False) -> list[Shard]:
    """The shards of all units, in their order, or those of rejected rows."""
    found = (r.rejected_shards if rejected else r.shards for r in result.receipts)
    return [shard for shards in found for shard in shards]


def rows_of(result: Result, *, rejected: bool = False) -> list[dict[str, Any]]:
    """Their rows."""
    shards = shards_of(result, rejected=rejected)
    return [row for shard in shards for row in read_shard(shard).to_pylist()]
