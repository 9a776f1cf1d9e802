"""back_translate: a translation of every pair's source."""

from typing import Any

from beam_jobs import back_translate
from beam_jobs.io import remote
from beam_jobs.io.shards import content_key, units
from models.files import digest
from pipeline.records import BackTranslateRecord, TranslationModel
from pipeline.stage import Run, Stage, pairs_record, shards_are_valid


def fingerprint(run: Run) -> Any:
    """How the model decodes, and the model if `nmt.model` names it."""
    options = run.config.nmt
    decoding = [options.engine, options.compute_type, options.beam, options.batch_tokens]
    model = digest(remote.localise(options.model)) if options.model else None
    return [*decoding, options.max_source_subwords, model]


def make(run: Run, key: str) -> BackTranslateRecord:
    """Translate. The key of a shard does not depend on other shards: more input translates only
    what is new.
    """
    model = digest(remote.localise(run.model))
    base = content_key("back_translate", back_translate.VERSION, fingerprint(run), model)
    result = back_translate.run(
        units(run.shards("ingest"), base),
        run.folder("back_translate"),
        run.model,
        run.config.nmt,
        run.arguments,
        accelerator=run.config.accelerator,
    )
    used = TranslationModel(path=run.model, sha256=model)
    return pairs_record(BackTranslateRecord, result, model=used)


STAGE = Stage(
    name="back_translate",
    depends_on=("ingest", "nmt"),
    version=back_translate.VERSION,
    fingerprint=fingerprint,
    make=make,
    is_valid=shards_are_valid,
)
