"""Stage `columns`: stores scores that another program computed, sorted by a hash of the id."""

from typing import Any

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.transforms.score_files import ScoreFile, find_score_files, read_scores
from paraloom.models.files import atomic_folder, digest
from paraloom.models.scorers.columns import store
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import StageRecord
from paraloom.pipeline.run.run import Run


class ColumnsRecord(StageRecord, stage="columns"):
    """The record of the stage `columns`: the number of rows and the digest of each score."""

    rows: dict[str, int]
    digests: dict[str, str]


def files(config: Config) -> dict[str, list[ScoreFile]]:
    """Find the files of each score, and check the first rows of each file."""
    candidates = config.variant["candidates"]
    return {
        name: find_score_files(name, paths, candidates=candidates)
        for name, paths in config.score.columns.items()
    }


check = files


def fingerprint(run: Run) -> Any:
    """Return the digests of the files, and whether pairs have candidate numbers."""
    return [
        run.config.variant["candidates"],
        {
            name: sorted(storage.several(storage.known_digest, [file.path for file in found]))
            for name, found in files(run.config).items()
        },
    ]


def make(run: Run, key: str) -> ColumnsRecord:
    """Store the values of each score."""
    rows, digests = {}, {}
    with atomic_folder(run.local_folder("columns")) as folder:
        for name, found in files(run.config).items():
            blocks = (block for file in found for block in read_scores(file))
            rows[name], digests[name] = store(folder / name, blocks), digest(folder / name)
    return ColumnsRecord(rows=rows, digests=digests, digest=run.publish("columns"))
