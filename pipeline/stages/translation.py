"""The translation models of a run, and the translation job of `back_translate` and `pivot`."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from paraloom.beam_jobs import VERSIONS, storage
from paraloom.beam_jobs.engine.options import threads_here
from paraloom.beam_jobs.engine.shards import content_key, units
from paraloom.beam_jobs.storage import remote
from paraloom.beam_jobs.transforms.translations import Direction, TranslatorFactory
from paraloom.models import hub
from paraloom.models.errors import UserError
from paraloom.models.files import CARD, digest
from paraloom.models.nmt import NmtOptions
from paraloom.models.nmt.convert import RECORD
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.base import Languages, NmtModel, TokenLayout
from paraloom.models.nmt.families.converted import ConvertedModel
from paraloom.models.nmt.families.subwords import MosesBpe
from paraloom.models.printing import say
from paraloom.models.structured import front_matter
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.input import InputOptions
from paraloom.pipeline.config.languages import check_model
from paraloom.pipeline.run.records import BackTranslateRecord, TranslationModel
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import pairs_record
from paraloom.pipeline.stages import pairs_before

CONVERSIONS = "_conversions"
"""The folder of converted models, for runs in an object store."""
ENGINE = "ctranslate2"
"""The inference engine. Keys contain this name, because earlier versions had other engines."""


class Model(NamedTuple):
    """A translation model of a run."""

    name: str  # folder, or name on the Hub
    options: NmtOptions
    languages: Languages
    key: str = "nmt.model"  # the configuration key of the model

    @property
    def folder(self) -> Path:
        """The local path of the model. A remote model is downloaded."""
        return hub.fetch(remote.localise(self.name), self.key)

    @property
    def digest(self) -> str:
        """The digest of the model's files, the checkpoint's name, and the file `nmt.tokenizer`."""
        path, tokenizer = self.folder, self.options.tokenizer
        own = digest(path.parent if path.suffix == ".pt" else path)
        more = [path.name] * (path.suffix == ".pt") + [digest(of) for of in [tokenizer] if of]
        return content_key(own, *more) if more else own

    def open(self) -> NmtModel:
        """Open the model's files, except the weights."""
        return open_model(self.folder, self.languages, self.options.tokenizer)

    def factory(self, run: Run) -> TranslatorFactory:
        """Return what workers need to open the model. Upload a converted model if necessary."""
        factory = TranslatorFactory(hub.pinned(self.name), self.options, self.languages)
        if not storage.is_remote(run.config.run) or threads_here(run.arguments):
            return factory
        try:
            made = self.open().converted()
        except UserError:  # this machine lacks libraries or memory that workers may have
            return factory
        place = storage.join((run.base or run).config.run, CONVERSIONS, made.path.name)
        record = storage.join(place, RECORD)
        # The record is uploaded last, because it marks a complete upload.
        files = sorted(made.path.iterdir(), key=lambda file: file.name == RECORD)
        if not storage.exists(record) or storage.read_bytes(record) != files[-1].read_bytes():
            say(f"{self.key}: uploading the converted model for the workers")
            for file in files:
                storage.copy(str(file), storage.join(place, file.name))
        return factory._replace(conversion=(place, made.digest))

    def record(self) -> TranslationModel:
        """Return the model's entry in the record of a stage."""
        folder = self.folder
        return TranslationModel(
            path=self.name,
            sha256=self.digest,
            revision=hub.revision(folder),
            license=license_of(folder),
            family=self.open().family,
        )

    def tags(self) -> list[Any]:
        """Return language tags or codes that affect translations, as part of a key."""
        model, tags = self.open(), list[Any]()
        if model.layout != TokenLayout():
            # The empty prompt keeps keys equal to the keys of version 0.2.
            tags.append(asdict(model.layout) | {"prompt": ""})
        if isinstance(model, ConvertedModel) and isinstance(model.subwords(), MosesBpe):
            tags += [self.languages.source, self.languages.target]  # for Moses' tokeniser
        return tags

    def check(self, options: InputOptions | None) -> None:
        """Check the model's files and languages, unless the model is in an object store."""
        if not storage.is_remote(self.name):
            model = self.open()
            model.subwords()  # raises an error if the files are damaged
            if options and options.check_languages:
                check_model(model, self.key, self.languages)


def license_of(folder: Path) -> str | None:
    """Return the `license` in the metadata of a folder's README.md, or None."""
    with suppress(UserError, AttributeError):
        value = front_matter(folder / CARD).get("license")
        values = value if isinstance(value, list) else [value]
        return ", ".join(text for text in values if isinstance(text, str)) or None
    return None


def backward(run: Run) -> Model:
    """Return the model that translates sources into the references' language."""
    options = run.config.nmt
    return Model(options.model or run.folder("nmt"), options, run.config.languages)


def forward(config: Config, trained: str = "") -> Model:
    """Return the model that translates references: `nmt.forward_model`, or else `trained`."""
    options = config.nmt.replace(candidates=1, sampling=None, tokenizer=None)
    languages, name = config.languages.reversed(), config.nmt.forward_model or trained
    return Model(name, options, languages, "nmt.forward_model")


def decoding(options: NmtOptions) -> list[Any]:
    """Return the decoding options for a key, without the options in `NmtOptions.several`."""
    limits = [options.batch_tokens, options.max_source_subwords]
    repetition = options.against_repetition()
    return [ENGINE, options.compute_type, options.beam, *limits, *[repetition] * bool(repetition)]


def shares_translations(config: Config) -> bool:
    """Whether equal texts in a shard are translated only once."""
    return config.input is not None and config.input.unique == "source"


def translate(
    run: Run, direction: Direction, model: Model, depends_on: list[Any]
) -> BackTranslateRecord:
    """Run a translation job, and return the record of its stage."""
    from paraloom.beam_jobs import back_translate

    used, options = model.record(), model.options
    own = [decoding(options), options.several(), used.sha256, model.tags()]
    other = None if run.forced else run.config.nmt.reuse
    job = back_translate.TranslationJob(
        model=model.factory(run),
        accelerator=run.config.accelerator,
        seed=run.config.seed,
        distinct=shares_translations(run.config),
        direction=direction,
        # Sampled translations depend on the whole shard, so they have no key and are not reused.
        key="" if options.sampling else content_key(direction.job, VERSIONS["back_translate"], own),
        reuse=[storage.join(other, direction.job)] if other else [],
    )
    shards = run.shards(pairs_before(direction.job, run.config))
    key = content_key(direction.job, VERSIONS["back_translate"], *depends_on)
    # Keys do not depend on other shards, so if the input grows, only new shards are translated.
    work = units(shards, key, candidates=options.candidates)
    limit = run.config.max_rejected
    output = run.folder(direction.job)
    result = back_translate.run(work, output, job, run.arguments, max_rejected=limit)
    measured = [receipt.measured(back_translate.Translated) for receipt in result.receipts]
    used.converted = sorted({of.converted for of in measured if of.converted})
    used.compute_types = sorted({of.compute_type for of in measured if of.compute_type})
    return pairs_record(BackTranslateRecord, result, model=used)
