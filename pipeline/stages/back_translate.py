"""Stage `back_translate`: translates the sources."""

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
    """Return the options on which translations depend, and the digest of `nmt.model`."""
    options, model = run.config.nmt, backward(run)
    more: list[Any] = [options.several()] if options.several() else []
    more += [run.config.seed] if options.sampling else []
    more += ["unique source"] if shares_translations(run.config) else []
    named = [model.digest, *model.tags()] if options.model else [None]
    return [*decoding(options), *named, *more]


def make(run: Run, key: str) -> BackTranslateRecord:
    """Translate the sources."""
    model = backward(run)
    return translate(run, BACK, model, [fingerprint(run), model.digest])


def check(config: Config) -> None:
    """Check that `nmt.reuse` names a run, and that the model can be used."""
    done = storage.exists(storage.join(config.run, "back_translate", STAGE_RECORD))
    # The run in `nmt.reuse` may be deleted as soon as this stage is finished.
    if (other := config.nmt.reuse) and not done and not is_run(other):
        raise UserError(f"nmt.reuse: {other}: no run here; name a run's folder, or remove the key")
    if config.nmt.model:
        Model(config.nmt.model, config.nmt, config.languages).check(config.input)
