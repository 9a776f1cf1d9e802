"""Stage `bucket`: computes the deciles of the scores."""

from typing import Any

from paraloom.beam_jobs import VERSIONS
from paraloom.beam_jobs.engine.shards import units
from paraloom.pipeline.run.records import BucketRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import pairs_record

version = VERSIONS["bucket"]


def fingerprint(run: Run) -> Any:
    """Return the names of the scores."""
    return run.config.score.names


def make(run: Run, key: str) -> BucketRecord:
    """Add deciles to the pairs."""
    from paraloom.beam_jobs import bucket

    work = units(run.shards("score"), key)  # the stage's key, because deciles depend on all shards
    result = bucket.run(work, run.folder("bucket"), run.config.score.names, run.arguments)
    return pairs_record(BucketRecord, result, deciles=bucket.summarise(result.receipts))
