"""Models of sentence-transformers and spaCy that score pairs: their stages, which make no files.

A stage's record says which model it is; its digest is part of the keys of the scores.
"""

from collections.abc import Callable
from pathlib import Path

from paraloom.beam_jobs import storage
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
from paraloom.pipeline.records import ScoringModelRecord, UsedModel
from paraloom.pipeline.stage import Run, Stage, needed_by_scorers
from paraloom.pipeline.stages.translation import license_of


def _stage(key: str, find: Callable[[str], Path]) -> Stage:
    """The stage of the model that `score.<key>` names; `find` gives its folder on this machine."""

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
        enabled=needed_by_scorers(key),
        check=check,
        resource=None,
    )


STAGES = {
    "sentence_model": _stage("sentence_model", find_sentence_model),
    "cross_encoder_model": _stage("cross_encoder_model", find_cross_encoder),
    "wordnet": _stage("wordnet", find_wordnet),
    "spacy": _stage("spacy", find_pipeline),
}


def model_names(config: Config) -> dict[str, str]:
    """The models that the scorers need, by resource; names on the Hub have their commit."""
    return {
        key: hub.pinned(getattr(config.score, key))
        for scorer, key in MODEL_KEYS.items()
        if scorer in config.score.scorers
    }
