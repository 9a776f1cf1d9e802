"""Helpers that write tables as shards for jobs, and read the rows that a job has written."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import Receipt, Shard, commit, read_shard, write_shard
from paraloom.models.hashing import text_hashes

Write = Callable[..., list[Shard]]
"""The type of the fixtures `bucketed` and `scored`."""
ONE = ["--direct_num_workers", "1"]


def cut(folder: Path | str, table: pa.Table, rows: int) -> list[Shard]:
    """Write shards of at most `rows` rows. An empty table makes one shard without rows."""
    return [
        write_shard(f"{folder}/part-00000-{n:05d}.parquet", table.slice(start, rows))
        for n, start in enumerate(range(0, max(len(table), 1), rows))
    ]


def filled(rows: list[dict[str, Any]], form: pa.Schema) -> pa.Table:
    """Return pairs with these values. In other columns, all pairs are equal except for ids."""
    texts = {name: f"a {name}" for name in ("source", "reference", "translation")}
    others = {**dict.fromkeys(form.names, 0), **texts, "translation_score": -0.5}
    same = {name: value for name, value in others.items() if name in form.names}
    values = [{**same, "id": f"id-{i}", **row} for i, row in enumerate(rows)]
    return pa.Table.from_pylist(values, form)


def deciles_by_a_sort(ids: list[str], scores: Sequence[float] | np.ndarray) -> list[int]:
    """Return deciles. Decile k begins at rank ⌊k·n/10⌋. Hashes of ids order equal scores."""
    n, order = len(ids), np.lexsort((text_hashes(pa.array(ids, pa.string())), np.asarray(scores)))
    found = np.empty(n, int)
    found[order] = [sum(k * n // 10 <= rank for k in range(1, 10)) for rank in range(n)]
    return list(found.tolist())


def shards_of(result: Result, *, rejected: bool = False) -> list[Shard]:
    """Return the shards of all units in their order, or the shards of rejected rows."""
    found = (r.rejected_shards if rejected else r.shards for r in result.receipts)
    return [shard for shards in found for shard in shards]


def rows_of(result: Result, *, rejected: bool = False) -> list[dict[str, Any]]:
    """Return the rows of the shards in `shards_of`."""
    shards = shards_of(result, rejected=rejected)
    return [row for shard in shards for row in read_shard(shard).to_pylist()]


def accepted(folder: Path | str, name: str, table: pa.Table, key: str = "k", **how: Any) -> Receipt:
    """Write a finished unit with one part file and without rejected rows."""
    pieces = [(name, table, pa.table({"reason": pa.array([], pa.string())}))]
    return commit(str(folder), name, key, table.num_rows, pieces, started=0, **how)


def bucketed_pairs(columns: Mapping[str, Any], scores: Sequence[str], **form: Any) -> pa.Table:
    """Return pairs like the stage `bucket`, with deciles and with values for missing columns."""
    rows = len(columns["reference"])
    values: dict[str, Any] = {
        "id": [f"id-{i}" for i in range(rows)],
        "source": ["zdroj"] * rows,
        "translation_subwords": [9] * rows,
        "reference_tokens": [8] * rows,
        "translation_tokens": [8] * rows,
        **columns,
    }
    for score in scores:
        ranks = np.argsort(np.argsort(values[score], kind="stable"))
        values[schema.decile(score)] = 10 * ranks // rows
    target = schema.bucketed(tuple(scores), **form)
    return pa.table([pa.array(values[f.name]).cast(f.type) for f in target], schema=target)
