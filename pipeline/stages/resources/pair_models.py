"""Stages that record the paths and digests of scorers' models and of WordNet."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import content_key
from paraloom.beam_jobs.storage import remote
from paraloom.models import hub
from paraloom.models.files import digest
from paraloom.models.sentence_models import find_cross_encoder, find_model
from paraloom.models.text.parses import find_pipeline
from paraloom.models.text.wordnet import find_wordnet
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.options import MODEL_KEYS
from paraloom.pipeline.run.records import ScoringModelRecord, StageRecord, UsedModel
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage
from paraloom.pipeline.stages import needed
from paraloom.pipeline.stages.translation import ENGINE, Model, backward, forward, license_of


def _stage(key: str, find: Callable[[str], Path]) -> Stage:
    """Make the stage of the model in `score.<key>`. `find` returns the model's local folder."""

    def folder(config: Config) -> Path:
        return find(remote.localise(getattr(config.score, key)))

    def make(run: Run, _: str) -> ScoringModelRecord:
        where = folder(run.config)
        model = UsedModel(
            path=getattr(run.config.score, key),
            sha256=digest(where),
            revision=hub.revision(where),
            license=license_of(where),
        )
        return ScoringModelRecord(model=model, digest=model.sha256)

    def check(config: Config) -> None:
        if not storage.is_remote(getattr(config.score, key)):
            folder(config)

    return Stage(
        name=key,
        fingerprint=lambda run: digest(folder(run.config)),
        make=make,
        check=check,
        resource=None,
    )


def translation_models(run: Run) -> dict[str, Model]:
    """Return the translation models that scorers use, by resource."""
    models = {
        "translation_model": backward(run),
        "forward_model": forward(run.config, run.folder("forward_nmt")),
    }
    return {name: of for name, of in models.items() if needed(name, run.config)}


def _translation_stage(name: str, trained: str) -> Stage:
    """Make the stage of a translation model, which may be the result of the stage `trained`."""

    def fingerprint(run: Run) -> Any:
        model, options = translation_models(run)[name], run.config.nmt
        computing = [ENGINE, options.compute_type, options.batch_tokens]
        given = options.model if trained == "nmt" else options.forward_model
        named = [model.digest, *model.tags()] if given else []
        return [*computing, options.max_source_subwords, *named]

    def make(run: Run, key: str) -> StageRecord:
        model = translation_models(run)[name]
        made = content_key(fingerprint(run), model.digest)
        if trained == "nmt":  # the record of `back_translate` names the model
            return StageRecord(digest=made)
        return ScoringModelRecord(model=model.record(), digest=made)

    def check(config: Config) -> None:
        if name == "forward_model" and config.nmt.forward_model:
            forward(config).check(config.input)

    return Stage(
        name=name,
        depends_on=(trained,),
        fingerprint=fingerprint,
        make=make,
        check=check,
        resource=None,
    )


STAGES = {
    "translation_model": _translation_stage("translation_model", "nmt"),
    "forward_model": _translation_stage("forward_model", "forward_nmt"),
    "sentence_model": _stage("sentence_model", find_model),
    "cross_encoder_model": _stage("cross_encoder_model", find_cross_encoder),
    "wordnet": _stage("wordnet", find_wordnet),
    "spacy": _stage("spacy", find_pipeline),
}


def model_names(config: Config) -> dict[str, str]:
    """Return scorers' models by resource: local paths, or names on the Hub with the commit."""
    return {
        key: hub.pinned(getattr(config.score, key))
        for scorer, key in MODEL_KEYS.items()
        if scorer in config.score.scorers
    }
