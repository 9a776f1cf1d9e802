"""Stage `generate`: asks language models for candidates."""

from typing import Any

from pydantic import Field

from paraloom.beam_jobs import VERSIONS
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.rejections import Limit
from paraloom.beam_jobs.engine.shards import content_key, units
from paraloom.beam_jobs.transforms.answer_files import GenerateMeasurements
from paraloom.models.chat.answers import Usage
from paraloom.models.chat.prompts import variables
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import Lenient, PairsRecord, RunRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import pairs_record
from paraloom.pipeline.stages import pairs_before
from paraloom.pipeline.stages.translation import ENGINE, backward

version = VERSIONS["generate"]


class GeneratedBy(Usage, Lenient):
    """The prompt, the requests, and the rejected rows of a language model."""

    model: str = ""
    prompt: str = ""  # name of the prompt
    prompt_text: str = ""
    license: str | None = None
    rejected: dict[str, int] = Field(default_factory=dict)  # number of rows by reason
    cost: float | None = None  # computed from the prices in the configuration


class GenerateRecord(PairsRecord, stage="generate"):
    """The record of the stage `generate`, with an entry for each language model."""

    generators: dict[str, GeneratedBy] = Field(default_factory=dict)


def fingerprint(run: Run) -> Any:
    """Return the generators' options and prompts, the languages, and the scoring model."""
    config, scoring = run.config, list[Any]()
    if config.has_model:
        options = config.nmt
        scoring += [ENGINE, options.compute_type, options.max_source_subwords]
        if options.model:
            model = backward(run)
            scoring += [model.digest, *model.tags()]
    languages = [config.languages.source, config.languages.target]
    first = config.nmt.candidates if config.translates else 0
    asked = [[of.name, of.n, of.parameters(), of.template().text] for of in config.chats]
    return [asked, languages, [config.nmt_name, first], scoring]


def make(run: Run, key: str) -> GenerateRecord:
    """Ask the language models for candidates, and score the candidates."""
    from paraloom.beam_jobs import generate

    config = run.config
    model = backward(run) if config.has_model else None
    own = content_key(VERSIONS["generate"], fingerprint(run), model and model.digest)
    translated = {of.name: of for of in run.shards("back_translate")} if config.translates else {}
    n, pairs = sum(of.n for of in config.chats), run.shards(pairs_before("back_translate", config))
    work = [
        generate.GenerationUnit(
            index=unit.index,
            key=content_key(unit.key, other.digest if other else None),
            shard=unit.shard,
            candidates=n,
            translated=other,
        )
        for unit in units(pairs, own)
        for other in [translated.get(unit.name)]
    ]
    languages = config.languages
    job = generate.GenerationJob(
        generators=[(of, of.template()) for of in config.chats],
        first=config.nmt.candidates if config.translates else 0,
        nmt=config.nmt_name,
        model=model and model.factory(run),
        languages=(languages.source or "", languages.target or ""),
        accelerator=config.accelerator,
        limit=Limit(share=config.max_rejected, question="is the server the right one?"),
    )
    result = generate.run(work, run.folder("generate"), job, run.arguments)
    record = pairs_record(GenerateRecord, result)
    measured = (receipt.measured(GenerateMeasurements) for receipt in result.receipts)
    used = [of.generators for of in measured]
    record.generators = {}
    for of in config.chats:
        begins, prompt = f"{of.name}: ", of.template()
        usage = sum((u[of.name] for u in used), Usage())
        record.generators[of.name] = GeneratedBy(
            **usage.model_dump(),
            model=of.model,
            prompt=prompt.name,
            prompt_text=prompt.text,
            license=of.license,
            rejected={
                reason.removeprefix(begins): rows
                for reason, rows in record.rejected.items()
                if reason.startswith(begins)
            },
            cost=usage.at_prices(dict(of.prices) if of.prices else None),
        )
    return record


def generators_of(record: RunRecord) -> dict[str, GeneratedBy]:
    """Return each language model's entry, with licence and cost according to `record.config`."""
    found = dict((record.find(GenerateRecord) or GenerateRecord()).generators)
    for of in record.config.chats:
        if made := found.get(of.name):
            cost = made.at_prices(dict(of.prices) if of.prices else None)
            found[of.name] = made.model_copy(update={"license": of.license, "cost": cost})
    return found


def check(config: Config) -> None:
    """Check the prompts, and that the library `openai` is installed."""
    columns = {*schema.INGEST.names, *(config.input.keep if config.input else ())}
    known = columns | variables("", "", n=1, json=False).keys()
    for of in config.chats:
        try:
            prompt = of.template()
            unknown = set() if " defined" in prompt.text else prompt.names - known
            if unknown or not prompt.names & columns:
                what = f"{min(unknown)!r} is undefined" if unknown else "it names no column"
                raise UserError(f"prompt: {what}; known names are {', '.join(sorted(known))}")
        except UserError as error:
            raise UserError(f"generators: {of.name}: {error}") from error
    import openai  # noqa: F401
