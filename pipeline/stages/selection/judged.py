"""Stage `judged`: chooses a score and its deciles for `select.by: judged`."""

from typing import Any

from paraloom.beam_jobs.engine.shards import content_key
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.judging.cuts import JudgedRecord
from paraloom.pipeline.judging.describe import cut_lines
from paraloom.pipeline.judging.judgments import judgments_digest, read_judgments
from paraloom.pipeline.run.records import ScoreRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RANKED

version = 3
"""Increase this number when the same judgments lead to another choice."""


def fingerprint(run: Run) -> Any:
    """Return the digest of the judgments, the scores to choose from, and options of `select`."""
    options = run.config.select
    own = (run.find(ScoreRecord) or ScoreRecord()).scorers
    lower = [name for name in run.ranked_by if name in own and not own[name].higher_is_better]
    judgments = judgments_digest(run.config.run)
    values = [judgments, options.precision, options.good, run.ranked_by, lower]
    return [*values, options.where] if options.where else values


def make(run: Run, key: str) -> JudgedRecord:
    """Choose a score and deciles that reach `select.precision`, or raise a UserError."""
    from paraloom.pipeline.judging.agreement import join, measure

    config = run.config
    pairs = join(
        read_judgments(config.run),
        run.shards(RANKED),
        run.ranked_by,
        own=run.record(ScoreRecord).scorers,
        where=run.criteria().where,
    )
    options = config.select
    found = measure(pairs, good=options.good, precisions=[options.precision])
    remedy = f"judge more pairs (`paraloom judge {config.run}`)"
    if not found.cuts:
        raise UserError(
            f"select.by: judged: {found.judgments:,} judgments label {found.pairs:,} usable pairs "
            f"of this run, which is too few to choose deciles; {remedy}"
        )
    (cut,) = found.cuts
    if not cut.reached:
        best = " ".join(cut_lines(cut, found.rows))
        raise UserError(f"select.precision: {best.strip('.')}; {remedy} or lower select.precision")
    return JudgedRecord(agreement=found, digest=content_key(cut.score, cut.deciles))


def check(config: Config) -> None:
    """Check that the run has judgments."""
    if not read_judgments(config.run):
        raise UserError(
            f"select.by: judged: {config.run} has no judgments yet; run `paraloom bucket` with "
            f"this configuration, then `paraloom judge {config.run}`, then this command again"
        )
