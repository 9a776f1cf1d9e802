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
        above, _, last = folder.rpartition("/")
        if last == "corpus":
            _move(storage.join(folder, "corpus.tsv.gz"), storage.join(above, "corpus.tsv.gz"))
            _move(storage.join(folder, "README.md"), storage.join(above, "README.md"))
        for kind in _BESIDE:
            _move_folder(storage.join(folder, kind), storage.join(folder, f"_{kind}"))


def _move_folder(source: str, target: str) -> None:
    if storage.is_remote(source):
        for name in storage.names(source):
            _move(storage.join(source, name), storage.join(target, name))
    elif Path(source).is_dir():
        Path(source).rename(target)


def _move(source: str, target: str) -> None:
    if storage.exists(source):
        storage.copy(source, target)
        storage.remove(source)
