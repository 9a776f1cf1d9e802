"""Translation models that score pairs, one a direction: their stages, which make no files.

A stage's record says which model it is and how it computes.
"""

from typing import Any

from paraloom.beam_jobs.engine.shards import content_key
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.files import digest
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import ScoringModelRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, needed_by_scorers
from paraloom.pipeline.stages.translation import ENGINE, Model, backward, forward

_TRAINED = {"translation_model": "nmt", "forward_model": "forward_nmt"}
"""The resources, and the stages that train their models where no key names them."""


def _model(run: Run, resource: str) -> Model:
    if resource == "translation_model":
        return backward(run)
    return forward(run.config, run.folder(_TRAINED[resource]))


def scoring_models(run: Run) -> dict[str, TranslatorFactory]:
    """The translation models that scorers read, by resource."""
    needed = (name for name in _TRAINED if needed_by_scorers(name)(run.config))
    return {name: _model(run, name).factory for name in needed}


def _stage(resource: str) -> Stage:
    """The stage of a model."""

    def fingerprint(run: Run) -> Any:
        """The options that scores depend on, and the model if a key names it."""
        model, options = _model(run, resource), run.config.nmt
        given = options.model if resource == "translation_model" else options.forward_model
        computing = [ENGINE, options.compute_type, options.batch_tokens]
        named = [digest(model.folder), *model.tags()] if given else []
        return [*computing, options.max_source_subwords, *named]

    def make(run: Run, key: str) -> StageRecord:
        """Record the model; of the one that translates, the translations' record says more."""
        model = _model(run, resource)
        found = content_key(fingerprint(run), digest(model.folder))
        if resource == "translation_model":
            return StageRecord(digest=found)
        return ScoringModelRecord(model=model.record(), digest=found)

    def check(config: Config) -> None:
        """Check the model if a key names it; `back_translate` checks the one that translates."""
        if resource == "forward_model" and config.nmt.forward_model:
            forward(config).check(config.input)

    return Stage(
        name=resource,
        depends_on=(_TRAINED[resource],),
        fingerprint=fingerprint,
        make=make,
        enabled=needed_by_scorers(resource),
        check=check,
        resource=None,
    )


STAGES = {name: _stage(name) for name in _TRAINED}
