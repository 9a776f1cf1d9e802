"""A second copy of what a stage left: on object stores nothing can be renamed or linked."""

from __future__ import annotations

from dataclasses import replace

from beam_jobs.io import storage
from beam_jobs.io.shards import Shard, read_whole, receipts, remove_orphans, write_receipt


def copy_pairs(source: str, target: str) -> None:
    """Copy a finished stage of pairs, part files and receipts, in place of what is at `target`.

    Receipts are removed first and written last: half a copy is never taken for a whole one.

    Raises:
        DamagedError: a part file is not what was written; names it.
        UserError: `target` cannot be written.
    """

    def copied(shard: Shard) -> Shard:
        path = storage.join(target, shard.path.removeprefix(storage.join(source, "")).lstrip("/"))
        storage.write_bytes(path, read_whole(shard))
        return replace(shard, path=path)

    for name in storage.names(storage.join(target, "receipts")):
        storage.remove(storage.join(target, "receipts", name))
    found = []
    for receipt in receipts(source):
        found.append(
            replace(
                receipt,
                shards=tuple(map(copied, receipt.shards)),
                rejected_shards=tuple(map(copied, receipt.rejected_shards)),
            )
        )
        write_receipt(target, found[-1])
    remove_orphans(target, found)
