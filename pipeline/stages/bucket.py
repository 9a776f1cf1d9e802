"""bucket: the decile of every score."""

from paraloom.beam_jobs import VERSIONS
from paraloom.beam_jobs.engine.shards import units
from paraloom.pipeline.run.records import BucketRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, pairs_record, shards_are_valid


def make(run: Run, key: str) -> BucketRecord:
    """Add deciles. Their bounds depend on all rows, so all shards have the stage's key."""
    from paraloom.beam_jobs import bucket

    work = units(run.shards("score"), key)
    result = bucket.run(work, run.folder("bucket"), run.scorers, run.arguments)
    return pairs_record(BucketRecord, result, deciles=bucket.summarise(result.receipts))


STAGE = Stage(
    name="bucket",
    version=VERSIONS["bucket"],
    fingerprint=lambda run: run.scorers,
    make=make,
    is_valid=shards_are_valid,
)
