"""People's judgments of the run's pairs: the numbers behind the section of the report."""

from paraloom.beam_jobs.io import storage
from paraloom.pipeline.judging.agreement import join, measure
from paraloom.pipeline.judging.describe import cumulative_shares
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.record import AgreementRecord
from paraloom.pipeline.records import BucketRecord, RunRecord
from paraloom.pipeline.report.plots import Scale
from paraloom.pipeline.stage import shards_of

_PRECISIONS = (0.8, 0.9)


def agreement(folder: str, view: RunRecord, stage: str) -> AgreementRecord | None:
    """What the judgments of a run say of its scores; None without judgments of its pairs.

    `stage` has the deciles of the round that is the run's result.
    """
    judgments, bucket = read_judgments(folder), view.find(BucketRecord)
    if not judgments or not bucket:
        return None
    pairs = join(
        judgments,
        shards_of(storage.join(folder, stage)),
        list(bucket.deciles),
        own=view.own_scorers,
    )
    select = view.config.select
    precisions = sorted({*_PRECISIONS, select.precision})
    return measure(pairs, good=select.good, precisions=precisions, seed=view.config.seed)


def share_scale(found: AgreementRecord) -> Scale:
    """The y axis of cumulative shares: all curves, the wanted precisions, and some room."""
    values = [s for score in found.scores.values() for _, s in cumulative_shares(score)]
    values += [cut.wanted for cut in found.cuts]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * (high - low) or 0.05
    return Scale(max(low - room, 0.0), min(high + room, 1.0), 226, 20)
