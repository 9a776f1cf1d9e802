"""Stage `score`: computes the scores of pairs."""

from typing import Any

from paraloom.beam_jobs import VERSIONS, storage
from paraloom.beam_jobs.engine.shards import content_key, units
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.scorers import SCORERS
from paraloom.models.scorers.pair_scorer import TOKEN_COUNTS
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.notices import notify, of_similarities
from paraloom.pipeline.run.records import ScoreRecord, ScorerRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import first_rows, pairs_record, stages
from paraloom.pipeline.stages import RESOURCES, TABLE, pairs_before
from paraloom.pipeline.stages.resources.columns import ColumnsRecord
from paraloom.pipeline.stages.resources.pair_models import model_names, translation_models

version = VERSIONS["score"]


def depends_on(config: Config) -> tuple[str, ...]:
    """Return the stages that the table lists, and `ingest` if its pairs are not translated."""
    return ("ingest",) * config.is_mined + tuple(TABLE["score"].reads.split())


def plugin_keys(config: Config) -> dict[str, Any]:
    """For each scorer that is not built in, return the version, and digests of code and data."""
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
    """Return the scores' names, the language, scorers' versions other than 1, and `plugin_keys`."""
    scores, own = run.config.score.names, plugin_keys(run.config)
    versions = {name: _version(run.config, name) for name in scores if name in SCORERS}
    more = own | {name: version for name, version in versions.items() if version != 1}
    names = run.with_language(scores)
    return [names, more] if more else names


def _version(config: Config, name: str) -> Any:
    scorer, kind = SCORERS[name], config.score.compute_type
    rough = kind != "auto" and scorer.resource and scorer.resource.open_int8
    return [scorer.version, kind] if rough else scorer.version


def column_keys(run: Run, digests: dict[str, str], own: dict[str, Any]) -> dict[str, str]:
    """Compute each column's key. `digests` are digests of resources, and `own` is `plugin_keys`."""
    language = run.language
    if run.config.score.columns:
        stored = run.record(ColumnsRecord).digests
        own = own | {name: [own[name], of] for name, of in stored.items()}
    keys = dict.fromkeys(TOKEN_COUNTS, content_key(VERSIONS["score"], language))
    for name in run.config.score.names:
        if name in own:
            keys[name] = content_key(name, VERSIONS["score"], language, own[name])
        elif name in SCORERS:
            of = digests.get(SCORERS[name].resource_name or "")
            version = _version(run.config, name)
            keys[name] = content_key(name, VERSIONS["score"], language, version, of)
    return keys


def make(run: Run, key: str) -> ScoreRecord:
    """Score the pairs. A later round only adds the score of the previous round's encoder."""
    from paraloom.beam_jobs import score

    resources: dict[str, Any]
    if run.base and run.before:
        pairs = run.base.shards("score")
        resources = {"encoder": run.before.folder("embeddings")}
        digests = {"encoder": run.before.digest("embeddings")}
    else:
        pairs = run.shards(pairs_before("score", run.config))
        made = [of for n in RESOURCES if (of := stages()[n]).enabled(run.config)]
        resources = {
            of.name: storage.join(run.folder(of.name), of.resource).rstrip("/")
            for of in made
            if of.resource is not None
        }
        resources |= run.config.score.resources
        digests = {of.name: run.digest(of.name) for of in made}
        resources |= {name: of.factory(run) for name, of in translation_models(run).items()}
        resources |= model_names(run.config)
    key = content_key("score", VERSIONS["score"], fingerprint(run), digests)
    scoring = score.Scoring(
        run.config.score.names,
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
    record = pairs_record(ScoreRecord, result, **({"scorers": described} if own else {}))
    name = "paragram_similarity"
    if name in run.config.score.scorers and "paragram" in resources and record.rows_out:
        values = first_rows(run.shards("score"), [name], 10_000)[name].to_numpy()
        notify(of_similarities(values, "the first pairs"))
    return record


def check(config: Config) -> None:
    """Check that plug-in scorers can be loaded, and that `score.resources` has their data."""
    for source in config.score.sources:
        if source.name in config.score.columns:
            continue
        kind = (scorer := source.load()).resource
        if config.is_mined and {"source", "translation_score"} & {*scorer.reads}:
            raise UserError(
                f"score.scorers: {source.name} needs sources or a translation model; input.format "
                "pairs has neither"
            )
        if kind and kind.name not in config.score.resources:
            raise UserError(
                f"score.resources.{kind.name}: is missing; {source.name} needs {kind.remedy}"
            )
