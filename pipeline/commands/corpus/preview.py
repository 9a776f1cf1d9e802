"""`paraloom preview`: the pipeline on a sample of the input, and its report."""

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import find_bitext
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import connect
from paraloom.beam_jobs.engine.shards import write_shard
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.errors import UserError
from paraloom.models.printing import say
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.commands.options import Changes, ConfigFile, beam_options
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.input import MAX_CHARACTERS, InputOptions
from paraloom.pipeline.config.recorded import Written
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.run import run_stages
from paraloom.pipeline.stages.resources import RESOURCES

_READ = 20_000  # rows at the beginnings of the files, which the sample is drawn from


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    rows: Annotated[
        int, typer.Option("-n", metavar="N", min=1, max=_READ, help="Rows of the input to draw.")
    ] = 200,
) -> None:
    """Draw rows from the input, and take them to the selection in the folder RUN/preview: its
    report shows what is rejected, translations, scores, and what would be selected.

    Nothing is trained. Models of the run that are finished are used; without one of them, the
    preview ends before the stage that needs it, or leaves scores out, and says so.
    """
    read, arguments = read_config(config, changes or ()), beam_options(context)
    connect(arguments, [read.run])
    target, small = prepare(read, rows)
    run_stages(small, (target,), arguments)


def prepare(config: Config, rows: int) -> tuple[str, Config]:
    """Write the sample; the stage that ends its run, and the configuration of its run."""
    if config.input is None:
        raise UserError("input: is missing: there is nothing to preview")
    changes, target = _with_what_is_there(config)
    folder = storage.join(config.run, "preview")
    changes["input"] = _write_sample(config, config.input, rows, folder)

    def changed(keys: dict[str, Any]) -> dict[str, Any]:
        sections = {name: {**keys[name], **of} for name, of in changes.items()}
        place = storage.join(keys["run"], "preview")
        return {**keys, **sections, "run": place, "max_rejected": 1.0, "loop": {"rounds": 1}}

    small = Config.of(changed(config.model_dump()))
    small._written = Written(changed(config.written.keys), config.written.folders)
    return target, small


def _write_sample(config: Config, options: InputOptions, rows: int, folder: str) -> dict[str, Any]:
    """Write rows drawn from the beginnings of the files; the keys of `input` that read them."""
    bitexts = find_bitext(options.format, options.paths, options.layout)
    seen = preview(bitexts, rows=_READ, max_characters=MAX_CHARACTERS)
    drawn = np.random.default_rng(config.seed).permutation(len(seen.pairs))[:rows]
    sample = seen.pairs.take(pa.array(np.sort(drawn))).combine_chunks()
    say(
        f"preview: {len(sample):,} of about {seen.rows:,} rows, from the beginnings of "
        f"{seen.files} file(s); {seen.rejected:.1%} of the rows there cannot be used"
    )
    if config.is_plain_text:
        path = storage.join(folder, "sample.txt")
        text = "".join(f"{line}\n" for line in sample["reference"].to_pylist())
        storage.write_bytes(path, text.encode())
        return {"paths": [path], "clean": []}
    path = write_shard(storage.join(folder, "sample.parquet"), sample).path
    return {"format": "parquet", "paths": [path], "columns": {"id": "id"}, "clean": []}


def _with_what_is_there(config: Config) -> tuple[dict[str, dict[str, Any]], str]:
    """Changes to sections, so that nothing is trained, and the last stage that can be made."""
    finished, score, target = Manifest(config.run).stages, dict[str, Any](), "select"
    nmt: dict[str, Any] = {"model": config.nmt.model}
    if config.nmt.model is None and "nmt" in finished:
        nmt["model"] = storage.join(config.run, "nmt")
    for name, file in ((stage.name, stage.given) for stage in RESOURCES):
        if file and name in finished and getattr(config.score, name) is None:
            score[name] = storage.join(config.run, name, file)
    there = {None, "translation_model", *score}
    out = [
        scorer
        for scorer in config.score.scorers
        if scorer in SCORERS
        and (needed := SCORERS[scorer].resource_name) not in there
        and getattr(config.score, str(needed), None) is None
    ]
    left = [scorer for scorer in config.score.scorers if scorer not in out]
    score["scorers"] = left or ["translation_score"]
    if out:
        say(f"preview: without {', '.join(out)}: a run makes what they need")
    select: dict[str, Any] = {"size": None}
    where = (Predicate.parse(text).column for text in config.select.where)
    gone = {*CHOSEN, *out, *map(schema.decile, out)}
    lost = [name for name in (config.select.by, *where) if name in gone]
    if lost and nmt["model"] is not None:
        say(f"preview: ends before the selection, which reads {', '.join(dict.fromkeys(lost))}")
    if lost:
        select |= {"by": score["scorers"][0], "deciles": None, "where": [], "max_tokens": None}
        target = "bucket"
    if nmt["model"] is None:
        say("preview: ends after ingest; `paraloom train-nmt` trains the model that translates")
        target = "ingest"
    return {"nmt": nmt, "score": score, "select": select}, target
