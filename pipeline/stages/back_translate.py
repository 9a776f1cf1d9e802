"""back_translate: a translation of every pair's source."""

from typing import Any

from paraloom.beam_jobs import VERSIONS, storage
from paraloom.beam_jobs.transforms.translations import BACK
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.folder import is_run
from paraloom.pipeline.run.records import BackTranslateRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages.translation import (
    Model,
    backward,
    decoding,
    shares_translations,
    translate,
)

version = VERSIONS["back_translate"]


def fingerprint(run: Run) -> Any:
    """The decoding options, and the model if `nmt.model` names it."""
    options, model = run.config.nmt, backward(run)
    more: list[Any] = [options.several()] if options.several() else []
    more += [run.config.seed] if options.sampling else []
    more += ["unique source"] if shares_translations(run.config) else []
    named = [model.digest, *model.tags()] if options.model else [None]
    return [*decoding(options), *named, *more]


def make(run: Run, key: str) -> BackTranslateRecord:
    """Translate the sources."""
    model = backward(run)
    depends_on = [fingerprint(run), model.digest]
    return translate(run, BACK, model, depends_on)


def check(config: Config) -> None:
    """Check the model's files and languages, and, before the first translation, that `nmt.reuse`
    names a run: later it may have been deleted."""
    done = storage.exists(storage.join(config.run, "back_translate", STAGE_RECORD))
    if (other := config.nmt.reuse) and not done and not is_run(other):
        raise UserError(f"nmt.reuse: {other}: no run here; name the folder of a run")
    if config.nmt.model:
        Model(config.nmt.model, config.nmt, config.languages).check(config.input)
