"""Stage `pivot`: translates the references, which are plain text, into sources."""

from typing import Any

from paraloom.beam_jobs import VERSIONS
from paraloom.beam_jobs.transforms.translations import PIVOT
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import BackTranslateRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages.translation import decoding, forward, shares_translations, translate

version = VERSIONS["back_translate"]


def fingerprint(run: Run) -> Any:
    """Return the decoding options, and the digest and language tags of the model."""
    model = forward(run.config)
    shared = ["unique source"] if shares_translations(run.config) else []
    return [*decoding(model.options), model.digest, *model.tags(), *shared]


def make(run: Run, key: str) -> BackTranslateRecord:
    """Translate the references."""
    return translate(run, PIVOT, forward(run.config), [fingerprint(run)])


def check(config: Config) -> None:
    """Check the files and languages of the model."""
    forward(config).check(config.input)
