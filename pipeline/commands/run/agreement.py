"""`paraloom agreement`: how well scores agree with people, and which cut has a wanted precision."""

from typing import Annotated, Any

import typer
from rich.table import Table

from paraloom.beam_jobs.io import remote
from paraloom.beam_jobs.runners.launch import connect
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.scorers import SCORERS
from paraloom.models.scorers.plugins import column_of, installed, source_of
from paraloom.pipeline.commands.options import JsonFile, beam_options, write_json
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.read import recorded_config
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.judging.agreement import JudgedPairs, join, measure
from paraloom.pipeline.judging.describe import (
    by_agreement,
    counts_line,
    cut_lines,
    decile_shares,
    interval_in_words,
    number_in_words,
    select_lines,
)
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.labels import default_names, read_labels, score_labels
from paraloom.pipeline.judging.record import AgreementRecord
from paraloom.pipeline.judging.sampling import ScoredRun
from paraloom.pipeline.manifest import Manifest, as_made
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages.resources.pair_models import model_names
from paraloom.pipeline.stages.score import resource_paths


def command(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Run folder with judgments.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Labelled pairs instead of a run's judgments: STS, SICK, MRPC or judgments (TSV "
            "with the columns reference, paraphrase, score).",
        ),
    ] = None,
    resources_of: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="Score the labelled pairs with the scorers of this run."
        ),
    ] = None,
    scorers: Annotated[str | None, typer.Option(metavar="A,B", help="Only these scores.")] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="A file or folder that a scorer of --labels reads, such as sentence_model=DIR; "
            "repeatable.",
        ),
    ] = None,
    precision: Annotated[
        list[float] | None,
        typer.Option(metavar="P", help="Wanted precision of the cut; repeatable. Default: 0.9."),
    ] = None,
    good: Annotated[
        float,
        typer.Option(
            metavar="LABEL", min=0.01, max=100, help="Least label of a good pair, of 100."
        ),
    ] = 70.0,
    json: JsonFile = None,
) -> None:
    """Print each score's correlation with the labels, its shares of good pairs by decile, and the
    cut that keeps most pairs at a wanted precision.
    """
    wanted = precision or [0.9]
    if not all(0 < p < 1 for p in wanted):
        raise UserError("--precision: must be between 0 and 1, such as 0.9")
    if (run is None) == (labels is None):
        raise UserError("agreement: give either a run folder with judgments or --labels FILE")
    if run is not None and (resources_of or resource):
        raise UserError("agreement: --run and --resource are for --labels")
    names = scorers.split(",") if scorers else []
    if folder := run or resources_of:
        connect(beam_options(context), [folder])
    if labels is None:
        pairs, seed = _of_run(str(run), names)
    else:
        pairs, seed = _of_file(labels, resources_of, names, dict(map(_named, resource or [])))
    found = measure(pairs, good=good, precisions=list(dict.fromkeys(wanted)), seed=seed)
    _show(found)
    write_json(json, found.model_dump())


def _of_run(folder: str, names: list[str]) -> tuple[JudgedPairs, int]:
    run = ScoredRun(folder)
    run.check(names, "--scorers")
    judgments = read_judgments(folder)
    if not judgments:
        raise UserError(f"{folder}: has no judgments yet; run `paraloom judge {folder}`")
    pairs = join(judgments, run.shards(), names or run.scores, own=run.record.own_scorers)
    return pairs, run.record.config.seed


def _of_file(
    path: str, run: str | None, names: list[str], given: dict[str, str]
) -> tuple[JudgedPairs, int]:
    if run is None:
        entries = names or [
            *default_names(),
            *(n for n, s in SCORERS.items() if s.resource and s.resource.name in given),
        ]
        language, seed, resources = ENGLISH, 1, dict[str, Any]()
    else:
        record = as_made(Manifest(run).record, "score")
        if not record.started:
            raise UserError(f"--run {run}: no run here: it has no manifest.json")
        config = recorded_config(record.config.json_values()).replace(run=run)
        by_column = dict(zip(config.score.names, config.score.scorers, strict=True))
        entries = [by_column.get(name, name) for name in names] or config.score.scorers
        language, seed, resources = config.language, config.seed, _resources(config)
    own = ("translation_score", *SCORERS)
    foreign = [e for e in entries if e not in own and (column_of(e) != e or e in installed())]
    pairs = score_labels(
        read_labels(path),
        [column_of(entry) for entry in entries],
        sources=[source_of(entry) for entry in foreign],
        language=language,
        resources={**resources, **given},
    )
    return pairs, seed


def _resources(config: Config) -> dict[str, Any]:
    """What the scorers of a finished run read, as far as it is there."""
    run = Run(config=config, manifest=Manifest(config.run))
    made = {n: remote.localise(p) for n, p in resource_paths(run).items() if remote.exists(p)}
    return {**made, **model_names(config)}


def _named(entry: str) -> tuple[str, str]:
    name, equals, path = entry.partition("=")
    if not (name and equals and path):
        raise UserError(f"--resource {entry}: must be NAME=PATH")
    return name, path


def _show(found: AgreementRecord) -> None:
    scores = by_agreement(found.scores)
    out = console(max(100, 12 + sum(3 + max(len(name), 16) for name in scores)))
    out.print(f"{counts_line(found)}.")
    table = number_table("Agreement with the labels", "score", numbers=["Spearman", "95%"])
    table.add_column("better is")
    for name, score in scores.items():
        more = "more" if score.higher_is_better else "less"
        rho, interval = number_in_words(score.spearman), interval_in_words(score.interval)
        table.add_row(name, rho, interval, more)
    out.print(table)
    out.print(_deciles(found))
    for cut in found.cuts:
        out.print()
        for line in cut_lines(cut, found.rows):
            out.print(line)
        if cut.reached:
            out.print(select_lines(cut))
    if not found.cuts:
        out.print("No cut can be measured: no score has a judged pair in its best decile.")
    for name, reason in found.left_out.items():
        out.print(f"Left out: {name}, which {reason}.")


def _deciles(found: AgreementRecord) -> Table:
    scores = by_agreement(found.scores)
    table = number_table("Share of good pairs by decile", numbers=["decile", *scores])
    cells = {
        (name, decile): f"{share:.2f} ({interval_in_words((low, high))})"
        for name, score in scores.items()
        for decile, share, low, high in decile_shares(score)
    }
    for decile in range(10):
        table.add_row(str(decile), *(cells.get((name, decile), "") for name in scores))
    table.caption = "95% intervals by Wilson"
    return table
