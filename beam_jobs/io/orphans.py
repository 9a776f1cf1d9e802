"""Removal of what killed and losing attempts left in a stage's folder."""

from collections.abc import Iterable

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import EARLIER, Receipt, receipt_path

HASHES = "hashes"
"""The folder of a job's files between its steps, see `WithDuplicates`."""


def remove_orphans(folder: str, keep: Iterable[Receipt]) -> None:
    """Remove the files of a stage folder that do not belong to the units of `keep`.

    Part files, receipts, crash records, hashes, and temporary files of killed processes.
    """
    keep = list(keep)
    needed = {receipt_path(folder, receipt.name) for receipt in keep}
    for receipt in keep:
        needed.update(receipt.paths)
    kinds = {"": ".parquet", "rejected": ".parquet", HASHES: ""}
    kinds |= dict.fromkeys(("receipts", EARLIER, "attempts"), ".json")
    for subfolder, suffix in kinds.items():
        parent = storage.join(folder, subfolder) if subfolder else folder
        storage.remove_temporary(parent)
        paths = [storage.join(parent, n) for n in storage.names(parent) if n.endswith(suffix)]
        storage.remove_all(path for path in paths if path not in needed)
