"""translation_model: the model that translates, for the scorer `reference_score`.

The stage makes no files: its record says which model it is and how it computes.
"""

from typing import Any

from paraloom.beam_jobs.engine.shards import content_key
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.pipeline.run.records import StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, needed_by_scorers
from paraloom.pipeline.stages.translation import ENGINE, backward

needed = needed_by_scorers("translation_model")


def scoring_model(run: Run) -> TranslatorFactory | None:
    """The translation model, if a scorer reads it."""
    return backward(run).factory if needed(run.config) else None


def fingerprint(run: Run) -> Any:
    """The options that scores depend on, and the model if `nmt.model` names it."""
    model, options = backward(run), run.config.nmt
    computing = [ENGINE, options.compute_type, options.batch_tokens]
    named = [model.digest, *model.tags()] if options.model else []
    return [*computing, options.max_source_subwords, *named]


def make(run: Run, key: str) -> StageRecord:
    """Record the model."""
    return StageRecord(digest=content_key(fingerprint(run), backward(run).digest))


STAGE = Stage(
    name="translation_model",
    depends_on=("nmt",),
    fingerprint=fingerprint,
    make=make,
    enabled=needed,
    resource=None,
)
