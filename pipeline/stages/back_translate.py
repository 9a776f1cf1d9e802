"""back_translate: a translation of every pair's source."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from beam_jobs import back_translate
from beam_jobs.io import remote, storage
from beam_jobs.io.shards import content_key, receipts, units
from models.errors import UserError
from models.files import digest
from models.nmt import hub
from models.nmt.families.base import Layout
from models.nmt.families.registry import open_model
from models.nmt.translate import check_family
from pipeline.config import Config
from pipeline.model_card import license_of
from pipeline.records import BackTranslateRecord, TranslationModel
from pipeline.stage import Run, Stage, pairs_record, shards_are_valid


def fingerprint(run: Run) -> Any:
    """How the model decodes, and the model if `nmt.model` names it.

    Languages count by the tags that they choose, if the model has tags.
    """
    options = run.config.nmt
    decoding = [options.engine, options.compute_type, options.beam, options.batch_tokens]
    several = [options.several()] if options.several() else []
    seed = [run.config.seed] if options.sampling else []
    unique = ["unique source"] if _is_unique(run) else []
    more = [*several, *seed, *unique]
    if not options.model:
        return [*decoding, options.max_source_subwords, None, *more]
    folder = _folder(options.model)
    layout = open_model(folder, run.config.languages).layout
    tags = [asdict(layout)] if layout != Layout() else []
    return [*decoding, options.max_source_subwords, digest(folder), *tags, *more]


def _is_unique(run: Run) -> bool:
    return run.config.input is not None and run.config.input.unique == "source"


def make(run: Run, key: str) -> BackTranslateRecord:
    """Translate. The key of a shard does not depend on other shards: more input translates only
    what is new.
    """
    folder = _folder(run.model)
    model = digest(folder)
    base = content_key("back_translate", back_translate.VERSION, fingerprint(run), model)
    result = back_translate.run(
        units(run.shards("ingest"), base, candidates=run.config.nmt.candidates),
        run.folder("back_translate"),
        hub.pinned(run.model),  # workers elsewhere fetch the same commit
        run.config.nmt,
        run.arguments,
        languages=run.config.languages,
        accelerator=run.config.accelerator,
        seed=run.config.seed,
        distinct=base if _is_unique(run) else None,
    )
    used = TranslationModel(
        path=run.model,
        sha256=model,
        revision=hub.revision(folder),
        license=license_of(folder),
        family=open_model(folder, run.config.languages).family,
    )
    record = pairs_record(BackTranslateRecord, result, model=used)
    distinct = back_translate.distinct_folder(run.folder("back_translate"))
    for receipt in receipts(distinct) if _is_unique(run) else []:
        record.worker_seconds = round(record.worker_seconds + receipt.seconds, 3)
        record.peak_memory = max(record.peak_memory, receipt.peak_memory)
    return record


def check(config: Config) -> None:
    """Check engine, files and languages of a model that is on this machine or on the Hub.

    Raises:
        UserError: it cannot.
    """
    model = config.nmt.model
    if model and not storage.is_remote(model):
        found = open_model(_folder(model), config.languages)
        check_family(found, config.nmt)
        found.subwords()  # loaded, to find damaged files
    elif not model and config.nmt.engine == "transformers":
        raise UserError(
            "nmt.engine: transformers does not take the fairseq model that a run trains; choose "
            "ctranslate2 or fairseq, or name a model in nmt.model"
        )


def _folder(model: str) -> Path:
    """The folder on this machine of a model in an object store, on the Hub or here."""
    return hub.fetch(remote.localise(model))


STAGE = Stage(
    name="back_translate",
    depends_on=("ingest", "nmt"),
    version=back_translate.VERSION,
    fingerprint=fingerprint,
    make=make,
    is_valid=shards_are_valid,
    check=check,
)
