"""Copying of a stage's output; object stores have neither links nor renames."""

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.orphans import remove_orphans
from paraloom.beam_jobs.io.shards import Receipt, read_whole, receipts, write_receipt


def copy_pairs(source: str, target: str) -> None:
    """Replace the stage at `target` by a copy of a finished one: part files and receipts.

    Receipts are removed first and written last, so that a partial copy is never complete.
    """

    def moved(path: str) -> str:
        return storage.join(target, path.removeprefix(storage.join(source, "")).lstrip("/"))

    def copied(receipt: Receipt) -> Receipt:
        for shard in (*receipt.shards, *receipt.rejected_shards):
            storage.write_bytes(moved(shard.path), read_whole(shard))
        copy = receipt.moved(moved)
        write_receipt(target, copy)
        return copy

    before = storage.join(target, "receipts")
    storage.remove_all(storage.join(before, name) for name in storage.names(before))
    remove_orphans(target, storage.several(copied, receipts(source)))
