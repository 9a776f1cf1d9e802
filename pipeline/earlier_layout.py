"""Runs of version 0.2: their files get the names that they have now."""

from collections.abc import Iterable
from pathlib import Path

from paraloom.beam_jobs.io import storage
from paraloom.pipeline.names import folder_of

_BESIDE = ("rejected", "earlier", "attempts", "hashes", "progress", "receipts")
"""Folders beside part files, now with an underscore; the receipts are moved last."""


def rename(run: str, stages: Iterable[str]) -> None:
    """Rename the files of a run whose stages have these names, if version 0.2 wrote them."""
    folders = [storage.join(run, folder_of(stage)) for stage in stages]
    if storage.is_remote(run):  # there a look at every stage takes long; the first one is last
        first = storage.join(run, "ingest")
        before = bool(storage.names(storage.join(first, "receipts")))
        folders = [*(f for f in folders if f != first), first] if before else []
    for folder in folders:
        above, _, name = folder.rpartition("/")
        if name == "corpus":
            _move(storage.join(folder, "corpus.tsv.gz"), storage.join(above, "corpus.tsv.gz"))
            _move(storage.join(folder, "README.md"), storage.join(above, "README.md"))
        for kind in _BESIDE:
            there = storage.join(folder, kind)
            here = storage.join(folder, f"_{kind}")
            if not storage.is_remote(run):
                if Path(there).is_dir():
                    Path(there).rename(here)
                continue
            for name in storage.names(there):
                _move(storage.join(there, name), storage.join(here, name))


def _move(source: str, target: str) -> None:
    if storage.exists(source):
        storage.copy(source, target)
        storage.remove(source)
