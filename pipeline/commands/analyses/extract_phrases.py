"""`paraloom phrases`: the phrase table of a run's own pairs, in PPDB's text form."""

from __future__ import annotations

from collections.abc import Sequence

from beam_jobs.analysis import phrase_table
from beam_jobs.io import storage
from beam_jobs.io.shards import receipts, units
from models.errors import UserError


def run(
    folder: str, arguments: Sequence[str], *, min_count: int = 2, out: str | None = None
) -> None:
    """Count the phrases of a run's corpus; say what was written where.

    Args:
        folder: of the run.
        min_count: pairs that stand in fewer places are left out.
        out: the file; None is phrase_table.txt.gz in the run's folder.

    Raises:
        UserError: the run has no corpus yet, or no phrase pair stands in as many places.
    """
    shards = [shard for one in receipts(storage.join(folder, "corpus")) for shard in one.shards]
    if not shards:
        raise UserError(f"{folder}: no run with a corpus; `paraloom select` makes it")
    table = out or storage.join(folder, "phrases.txt.gz")
    found = phrase_table.run(units(shards, "phrases"), table, arguments, min_count=min_count)
    pairs = sum(shard.rows for shard in shards)
    if not found:
        storage.remove(table)
        raise UserError(
            f"{folder}: of {pairs:,} sentence pairs no two part in the same phrases; "
            "lower --min-count or make a larger corpus"
        )
    print(f"{table}: {found:,} phrase pairs of {pairs:,} sentence pairs")
