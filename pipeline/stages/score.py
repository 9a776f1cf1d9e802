"""score: a column for every scorer."""

from beam_jobs import score
from beam_jobs.io import storage
from beam_jobs.io.shards import content_key, units
from pipeline.records import PairsRecord
from pipeline.stage import Run, Stage, pairs_record, shards_are_valid
from pipeline.stages.resources import RESOURCES


def resource_paths(run: Run) -> dict[str, str]:
    """What the scorers of a run open, by the names of the stages that make it."""
    return {
        stage.name: storage.join(run.folder(stage.name), stage.resource).rstrip("/")
        for stage in RESOURCES
        if stage.enabled(run.config)
    }


def make(run: Run, key: str) -> PairsRecord:
    """Score the translations. A round after the first adds one score to those of the first: the
    similarity that the encoder of the round before gives.
    """
    if run.round > 1:
        before = run.at(run.round - 1)
        pairs, paths = run.at(0).shards("score"), {"encoder": before.folder("embeddings")}
        digests = {"encoder": before.digest("embeddings")}
    else:
        pairs, paths = run.shards("back_translate"), resource_paths(run)
        digests = {name: run.digest(name) for name in paths}
    key = content_key("score", score.VERSION, run.with_language(run.scorers), digests)
    result = score.run(
        units(pairs, key),
        run.folder("score"),
        run.scorers,
        paths,
        run.arguments,
        language=run.language,
    )
    return pairs_record(PairsRecord, result)


STAGE = Stage(
    name="score",
    depends_on=("back_translate", *(stage.name for stage in RESOURCES)),
    version=score.VERSION,
    fingerprint=lambda run: run.with_language(run.scorers),
    make=make,
    is_valid=shards_are_valid,
)
