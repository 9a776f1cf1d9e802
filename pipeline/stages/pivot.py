"""pivot: the sources of plain text, which a forward model makes of the references."""

from typing import Any

from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.transforms.translations import PIVOT
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import PivotRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage, shards_are_valid
from paraloom.pipeline.stages.translation import decoding, forward, shares_translations, translate


def fingerprint(run: Run) -> Any:
    """How the forward model decodes, and the model."""
    model = forward(run.config)
    shared = ["unique source"] if shares_translations(run.config) else []
    return [*decoding(model.options), model.digest, *model.tags(), *shared]


def make(run: Run, key: str) -> PivotRecord:
    """Translate the references."""
    model = forward(run.config)
    return translate(PivotRecord, run, PIVOT, model, [fingerprint(run)])


def check(config: Config) -> None:
    """Check the forward model."""
    forward(config).check(config.input)


STAGE = Stage(
    name="pivot",
    version=back_translate.VERSION,
    fingerprint=fingerprint,
    make=make,
    is_valid=shards_are_valid,
    enabled=lambda config: config.is_plain_text,
    check=check,
)
