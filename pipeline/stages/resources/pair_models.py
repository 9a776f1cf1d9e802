"""Models that score pairs: sentence-transformers, spaCy, WordNet, the translation model.

Their stages make no files: the record names the model, and its digest is part of the keys of the
scores.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import content_key
from paraloom.beam_jobs.storage import remote
from paraloom.models import hub
from paraloom.models.files import digest
from paraloom.models.scorers.learned.sentence_similarity import (
    find_cross_encoder,
    find_sentence_model,
)
from paraloom.models.text.parses import find_pipeline
from paraloom.models.text.wordnet import find_wordnet
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.options import MODEL_KEYS
from paraloom.pipeline.run.records import ScoringModelRecord, StageRecord, UsedModel
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage
from paraloom.pipeline.stages.translation import ENGINE, backward, license_of


def _stage(key: str, find: Callable[[str], Path]) -> Stage:
    """The stage of the model that `score.<key>` names; `find` returns its folder here."""

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


def _translation_fingerprint(run: Run) -> Any:
    """The options that scores depend on, and the model if `nmt.model` names it."""
    model, options = backward(run), run.config.nmt
    computing = [ENGINE, options.compute_type, options.batch_tokens]
    named = [digest(model.folder), *model.tags()] if options.model else []
    return [*computing, options.max_source_subwords, *named]


def _record_translation_model(run: Run, key: str) -> StageRecord:
    values = _translation_fingerprint(run), digest(backward(run).folder)
    return StageRecord(digest=content_key(*values))


STAGES = {
    "translation_model": Stage(
        name="translation_model",
        depends_on=("nmt",),
        fingerprint=_translation_fingerprint,
        make=_record_translation_model,
        resource=None,
    ),
    "sentence_model": _stage("sentence_model", find_sentence_model),
    "cross_encoder_model": _stage("cross_encoder_model", find_cross_encoder),
    "wordnet": _stage("wordnet", find_wordnet),
    "spacy": _stage("spacy", find_pipeline),
}


def model_names(config: Config) -> dict[str, str]:
    """The models of the scorers, by resource; names on the Hub include the commit."""
    return {
        key: hub.pinned(getattr(config.score, key))
        for scorer, key in MODEL_KEYS.items()
        if scorer in config.score.scorers
    }
