"""score: a column for every scorer."""

from typing import Any

from paraloom.beam_jobs import score, storage
from paraloom.beam_jobs.engine.shards import content_key, units
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.scorers import SCORERS
from paraloom.models.scorers.pair_scorer import TOKEN_COUNTS
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import ScoreRecord, ScorerRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, pairs_record, shards_are_valid, stages
from paraloom.pipeline.stages import RESOURCES
from paraloom.pipeline.stages.resources.columns import ColumnsRecord
from paraloom.pipeline.stages.resources.pair_models import model_names
from paraloom.pipeline.stages.resources.translation_model import scoring_model


def resource_paths(run: Run) -> dict[str, str]:
    """The files and folders that the scorers of a run open, by the names of the resources."""
    made = {
        stage.name: storage.join(run.folder(stage.name), stage.resource).rstrip("/")
        for stage in (stages()[name] for name in RESOURCES)
        if stage.enabled(run.config) and stage.resource is not None
    }
    return {**made, **run.config.score.resources}


def plugin_keys(config: Config) -> dict[str, Any]:
    """What the values of each scorer that is not Paraloom's depend on, besides the pairs."""
    given = config.score.resources
    return {
        source.name: [
            scorer.version,
            source.key(),
            digest(given[kind.name]) if (kind := scorer.resource) and kind.name in given else None,
        ]
        for source in config.score.sources
        for scorer in [source.load()]
    }


def fingerprint(run: Run) -> Any:
    """The scorers, and the versions of those that are not Paraloom's or have changed."""
    names, own = run.with_language(run.scorers), plugin_keys(run.config)
    versions = {name: _version(run.config, name) for name in run.scorers if name in SCORERS}
    more = own | {name: version for name, version in versions.items() if version != 1}
    return [names, more] if more else names


def _version(config: Config, name: str) -> Any:
    """The version of a scorer's values."""
    scorer, kind = SCORERS[name], config.score.compute_type
    rough = kind != "auto" and scorer.resource and scorer.resource.open_int8
    return [scorer.version, kind] if rough else scorer.version


def column_keys(run: Run, digests: dict[str, str], own: dict[str, Any]) -> dict[str, str]:
    """The key of what each column depends on besides the pairs, given the digests of the resources
    and what `plugin_keys` gives."""
    if run.config.score.columns:
        stored = run.record(ColumnsRecord).digests
        own = own | {name: [own[name], of] for name, of in stored.items()}
    keys = dict.fromkeys(TOKEN_COUNTS, content_key(score.VERSION, run.language))
    for name in run.scorers:
        if name in own:
            keys[name] = content_key(name, score.VERSION, run.language, own[name])
        elif name in SCORERS:
            of = digests.get(SCORERS[name].resource_name or "")
            version = _version(run.config, name)
            keys[name] = content_key(name, score.VERSION, run.language, version, of)
    return keys


def make(run: Run, key: str) -> ScoreRecord:
    """Score the translations. A round after the first adds one score to the first round's scores:
    the similarity that the encoder of the round before gives.
    """
    resources: dict[str, Any]
    if run.base and run.before:
        pairs = run.base.shards("score")
        resources = {"encoder": run.before.folder("embeddings")}
        digests = {"encoder": run.before.digest("embeddings")}
    else:
        pairs, resources = run.shards(run.candidates_stage), {**resource_paths(run)}
        if model := scoring_model(run):
            resources["translation_model"] = model
        resources |= model_names(run.config)
        made = (name for name in RESOURCES if stages()[name].enabled(run.config))
        digests = {name: run.digest(name) for name in made}
    key = content_key("score", score.VERSION, fingerprint(run), digests)
    scoring = score.Scoring(
        run.scorers,
        resources,
        run.config.score.sources,
        run.language,
        accelerator=run.config.accelerator,
        int8=run.config.score.compute_type == "int8",
    )
    result = score.run(
        units(pairs, key),
        run.folder("score"),
        scoring,
        run.arguments,
        keys=column_keys(run, digests, plugin_keys(run.config)),
        max_rejected=run.config.max_rejected,
    )
    own = {source.name: source.load() for source in run.config.score.sources}
    described = {n: ScorerRecord.model_validate(of, from_attributes=True) for n, of in own.items()}
    return pairs_record(ScoreRecord, result, **({"scorers": described} if own else {}))


def check(config: Config) -> None:
    """Load the scorers that are not Paraloom's."""
    for source in config.score.sources:
        kind = None if source.name in config.score.columns else source.load().resource
        if kind and kind.name not in config.score.resources:
            raise UserError(
                f"score.resources.{kind.name}: is missing; {source.name} needs {kind.remedy}"
            )


STAGE = Stage(
    name="score",
    version=score.VERSION,
    fingerprint=fingerprint,
    make=make,
    is_valid=shards_are_valid,
    check=check,
)
