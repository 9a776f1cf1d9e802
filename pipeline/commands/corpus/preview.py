"""`paraloom preview`: runs the stages on a sample of the input, and writes a report."""

from typing import Annotated, Any

import typer

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.models.printing import say
from paraloom.pipeline.commands.corpus import small_run
from paraloom.pipeline.commands.options import Changes, ConfigFile, beam_options, option
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.run.make import run_stages
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RANKED


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    rows: Annotated[
        int, option("N", "Number of rows to sample.", "-n", min=1, max=small_run.READ)
    ] = 200,
) -> None:
    """Draw random rows from the beginnings of the files, and run the stages up to selection.

    The results are in RUN/preview. The report shows rejected rows, translations, scores and
    selected pairs. A preview uses models that the run has trained. If a model is missing, the
    preview skips the scores, selections or stages that need the model, and says so.
    """
    read, arguments = read_config(config, changes or ()), beam_options(context)
    connect(arguments, [read.run])
    run = Run.open(read)
    target, small = prepare(run, rows)
    run_stages(small, (target,), arguments, base=run)


def prepare(run: Run, rows: int) -> tuple[str, Config]:
    """Write the sample. Return the last stage and the configuration of the preview."""
    config = run.config
    seen = small_run.read_beginnings(config, "preview")
    sample = small_run.draw(seen.pairs, rows, config.seed)
    say(
        f"preview: {len(sample):,} of about {seen.rows:,} rows, from the beginnings of "
        f"{seen.files} file(s); {seen.rejected:.1%} of the rows that were read cannot be used"
    )
    changes, target = _without_training(run)
    folder = storage.join(config.run, "preview")
    changes["input"] = small_run.write_sample(config, sample, folder)
    changes["nmt"] = {"reuse": None}

    def changed(keys: dict[str, Any]) -> dict[str, Any]:
        sections = {name: {**keys[name], **of} for name, of in changes.items()}
        place = storage.join(keys["run"], "preview")
        return {**keys, **sections, "run": place, "max_rejected": 1.0, "loop": {"rounds": 1}}

    small = Config.of(changed(config.model_dump()))
    small._written = changed(config.written)
    return target, small


def _without_training(run: Run) -> tuple[dict[str, Any], str]:
    """Return changes to the configuration that avoid training, and the last stage to run."""
    config, target = run.config, "select"
    left = small_run.scorers_at_hand(run)
    out = [scorer for scorer in config.score.scorers if scorer not in left]
    score = {"scorers": left or ["translation_score"]}
    if out:
        say(f"preview: leaves out {', '.join(out)}, because the run has not made their resources")
    gone = {*CHOSEN, *out, *map(schema.decile, out)}

    def missing(of: Config) -> list[str]:
        where = (Predicate.parse(text).column for text in of.select.where)
        return list(dict.fromkeys(name for name in (of.select.by, *where) if name in gone))

    named: dict[str, Any] = {}
    for name, own in config.select.selections.items():
        needs = missing(config.derived(f"selections/{name}"))
        named[name] = None if needs else own.model_dump()
        if needs:
            say(f"preview: leaves out the selection {name}, which needs {', '.join(needs)}")
    select: dict[str, Any] = {"size": None, "named": named}
    lost = missing(config)
    ranked = config.is_mined or config.nmt.model is not None or "nmt" in run.records
    if lost and ranked:
        whole = "all pairs of the run (select.by: {})"
        lacking = (whole.format(name) if name in CHOSEN else name for name in lost)
        say(f"preview: ends before the selection, which needs {', '.join(lacking)}")
    if lost:
        select |= {"by": score["scorers"][0], "deciles": None, "where": [], "max_tokens": None}
        target = RANKED
    if not ranked:
        say("preview: ends after ingest; `paraloom train-nmt` trains the missing translation model")
        target = "ingest"
    return {"score": score, "select": select, "embeddings": {"selection": None}}, target
