"""`paraloom select`: runs the stages up to selection, or counts the pairs to select."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from pydantic import BaseModel
from rich.table import Table

from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.engine.shards import Shard, read_shard
from paraloom.beam_jobs.transforms.criteria import Criteria, Preview, preview
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import (
    Changes,
    ConfigFile,
    Force,
    JsonFile,
    OnInterrupt,
    beam_options,
    option,
    write_json,
)
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.selection import CHOSEN
from paraloom.pipeline.run import make as runs
from paraloom.pipeline.run.folder import check_selection, with_selections
from paraloom.pipeline.run.plan import closure, outdated, plan
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RANKED
from paraloom.pipeline.stages.select import criteria as criteria_of


class Counted(BaseModel):
    """The JSON form of `paraloom select --dry-run`."""

    run: str
    selection: str
    rows: dict[str, int]  # number of rows by reason for rejection; `selected` for selected rows
    pairs: list[dict[str, Any]]  # the pairs that --show prints


def command(
    context: typer.Context,
    config: ConfigFile,
    changes: Changes = None,
    name: Annotated[
        str | None,
        option(
            "NAME",
            "Make the corpus of this named selection in RUN/selections/NAME. The keys of "
            "the selection come from select.named and from --set select.…",
        ),
    ] = None,
    force: Force = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the selected pairs, and write nothing.")
    ] = False,
    show: Annotated[int, option("N", "With --dry-run: also print N random pairs.", min=0)] = 0,
    json: JsonFile = None,
    on_interrupt: OnInterrupt = None,
) -> None:
    """Stages that are up to date are skipped. An interrupted run resumes.

    Use --dry-run to try conditions (--set 'select.where=…'). --dry-run needs a run with deciles.
    If the configuration has the stage `exclude`, `auto_select` or `judged`, --dry-run needs this
    stage, too.
    """
    beam = beam_options(context, on_interrupt)
    if name == "":  # for example, from `--name "$UNSET"`
        raise UserError("--name is empty; name a selection, or leave the option out")
    name = name or ""
    read = read_config(config, changes or (), name)
    if not dry_run:
        if show or json:
            raise UserError("select: --show and --json need --dry-run")
        runs.run_stages(read, ("select",), beam, force=force, selection=name)
        return
    connect(beam, runs.remote_paths(read))
    shards, criteria = scored(runs.localised(read), name)
    found = preview(shards, criteria)
    out = console()
    counts = ((reason, f"{rows:,}") for reason, rows in found.counts.items())
    out.print(number_table("Nothing is written", "", numbers=["rows"], rows=counts))
    pairs = sample(shards, found, show, criteria)
    if show:
        out.print(_pairs(pairs))
    rows = pairs.to_pylist()
    write_json(json, Counted(run=read.run, selection=name, rows=found.counts, pairs=rows))


def scored(config: Config, name: str = "") -> tuple[list[Shard], Criteria]:
    """Return the shards of `bucket`, and the criteria of the run or of a named selection."""
    config = with_selections(config)
    place = check_selection(config.run, config.select.selections, name)
    whole = Run.open(config)
    run, steps = whole.children[place] if place else whole, plan(whole)
    stale = outdated(steps)
    by = run.config.select.by
    wanted = [RANKED, *([{"auto": "auto_select"}.get(by, by)] if by in CHOSEN else [])]
    wanted += ["exclude"] * bool(config.select.exclude)
    for stage in wanted:
        if stage not in run.owner(stage).records or run.path(stage) in stale:
            runs.check(config, closure(map(run.path, wanted), steps))
            remedy = "`paraloom bucket`" if stage == RANKED else "`paraloom select`"
            raise UserError(
                f"{config.run}: --dry-run needs the stage {stage} of this configuration; "
                f"run {remedy} first"
            )
    return run.shards(RANKED), criteria_of(run)


def sample(shards: Sequence[Shard], found: Preview, size: int, criteria: Criteria) -> pa.Table:
    """Return at most `size` random selected pairs, with the scores that the criteria use."""
    count = len(found.rows)
    chosen = np.sort(np.random.default_rng().permutation(count)[:size])
    where = (predicate.column for predicate in criteria.where)
    columns = list(dict.fromkeys([criteria.by, *where, "reference", "translation"]))
    rows, units = found.rows[chosen], found.units[chosen]
    tables = [read_shard(shards[n], columns).take(rows[units == n]) for n in np.unique(units)]
    return pa.concat_tables(tables) if tables else pa.table({name: [] for name in columns})


def _pairs(pairs: pa.Table) -> Table:
    *scores, reference, translation = pairs.column_names
    rows = (
        [f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()]
        for row in pairs.to_pylist()
    )
    heads = [score.replace("_", " ") for score in scores]  # names may wrap at spaces
    return number_table(None, numbers=heads, after=[reference, translation], rows=rows)
