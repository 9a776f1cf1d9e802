"""`paraloom preview`: the pipeline on a sample of the input, and its report."""

from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import find_bitext
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.errors import UserError
from paraloom.models.printing import say
from paraloom.pipeline.commands.corpus.small_run import scorers_at_hand, write_sample
from paraloom.pipeline.commands.options import Changes, ConfigFile, beam_options
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.input import MAX_CHARACTERS, InputOptions
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.run.make import run_stages
from paraloom.pipeline.run.run import Run

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
    run = Run.open(read)
    target, small = prepare(run, rows)
    run_stages(small, (target,), arguments, base=run)


def prepare(run: Run, rows: int) -> tuple[str, Config]:
    """Write the sample; the stage that ends its run, and the configuration of its run."""
    config = run.config
    if config.input is None:
        raise UserError("input: is missing: there is nothing to preview")
    changes, target = _with_what_is_there(run)
    folder = storage.join(config.run, "preview")
    changes["input"] = _sample(config, config.input, rows, folder)

    def changed(keys: dict[str, Any]) -> dict[str, Any]:
        sections = {name: {**keys[name], **of} for name, of in changes.items()}
        place = storage.join(keys["run"], "preview")
        return {**keys, **sections, "run": place, "max_rejected": 1.0, "loop": {"rounds": 1}}

    small = Config.of(changed(config.model_dump()))
    small._written = changed(config.written)
    return target, small


def _sample(config: Config, options: InputOptions, rows: int, folder: str) -> dict[str, Any]:
    """Write rows drawn from the beginnings of the files; the keys of `input` that read them."""
    bitexts = find_bitext(options.format, options.paths, options.layout)
    seen = preview(bitexts, rows=_READ, max_characters=MAX_CHARACTERS)
    drawn = np.random.default_rng(config.seed).permutation(len(seen.pairs))[:rows]
    sample = seen.pairs.take(pa.array(np.sort(drawn))).combine_chunks()
    say(
        f"preview: {len(sample):,} of about {seen.rows:,} rows, from the beginnings of "
        f"{seen.files} file(s); {seen.rejected:.1%} of the rows there cannot be used"
    )
    return write_sample(config, sample, folder)


def _with_what_is_there(run: Run) -> tuple[dict[str, dict[str, Any]], str]:
    """Changes to sections, so that nothing is trained, and the last stage that can be made."""
    config, target = run.config, "select"
    left = scorers_at_hand(run)
    out = [scorer for scorer in config.score.scorers if scorer not in left]
    score = {"scorers": left or ["translation_score"]}
    if out:
        say(f"preview: without {', '.join(out)}: a run makes what they need")
    select: dict[str, Any] = {"size": None}
    where = (Predicate.parse(text).column for text in config.select.where)
    gone = {*CHOSEN, *out, *map(schema.decile, out)}
    lost = [name for name in (config.select.by, *where) if name in gone]
    translates = config.nmt.model is not None or "nmt" in run.records
    if lost and translates:
        say(f"preview: ends before the selection, which reads {', '.join(dict.fromkeys(lost))}")
    if lost:
        select |= {"by": score["scorers"][0], "deciles": None, "where": [], "max_tokens": None}
        target = "bucket"
    if not translates:
        say("preview: ends after ingest; `paraloom train-nmt` trains the model that translates")
        target = "ingest"
    return {"score": score, "select": select}, target
