"""score: a column for every scorer."""

from beam_jobs import score
from beam_jobs.io import storage
from beam_jobs.io.shards import content_key, units
from pipeline.records import PairsRecord
from pipeline.stage import Run, Stage, needed_by_scorers, pairs_record, shards_are_valid
from pipeline.stages.resources import RESOURCES
from pipeline.translation import backward


def resource_paths(run: Run) -> dict[str, str]:
    """What the scorers of a run open, by the names of the stages that make it."""
    return {
        stage.name: storage.join(run.folder(stage.name), stage.resource).rstrip("/")
        for stage in RESOURCES
        if stage.enabled(run.config) and stage.resource is not None
    }


needs_model = needed_by_scorers(score.MODEL)


def scoring_model(run: Run) -> score.ScoringModel | None:
    """The translation model, if a scorer reads it."""
    if not needs_model(run.config):
        return None
    model = backward(run)
    return score.ScoringModel(model.pinned, model.options, model.languages)


def make(run: Run, key: str) -> PairsRecord:
    """Score the translations. A round after the first adds one score to those of the first: the
    similarity that the encoder of the round before gives.
    """
    model = None
    if run.round > 1:
        before = run.at(run.round - 1)
        pairs, paths = run.at(0).shards("score"), {"encoder": before.folder("embeddings")}
        digests = {"encoder": before.digest("embeddings")}
    else:
        pairs, paths, model = run.shards("back_translate"), resource_paths(run), scoring_model(run)
        digests = {s.name: run.digest(s.name) for s in RESOURCES if s.enabled(run.config)}
    key = content_key("score", score.VERSION, run.with_language(run.scorers), digests)
    result = score.run(
        units(pairs, key),
        run.folder("score"),
        run.scorers,
        paths,
        run.arguments,
        language=run.language,
        model=model,
        accelerator=run.config.accelerator,
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
