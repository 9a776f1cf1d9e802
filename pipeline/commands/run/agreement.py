"""`paraloom agreement`: how well scores agree with people, and which cut has a wanted precision."""

from typing import Annotated

import typer
from rich.table import Table

from paraloom.beam_jobs.runners.launch import connect
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.scorers import SCORERS
from paraloom.models.scorers.plugins import column_of, installed, source_of
from paraloom.pipeline.commands.options import JsonFile, beam_options, write_json
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.judging.agreement import (
    JudgedPairs,
    conditions,
    corpus_precisions,
    join,
    measure,
)
from paraloom.pipeline.judging.describe import (
    by_agreement,
    counts_line,
    cut_lines,
    good_of,
    interval_in_words,
    number_in_words,
    select_lines,
)
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.labels import default_names, read_labels, score_labels
from paraloom.pipeline.judging.record import AgreementRecord
from paraloom.pipeline.judging.sampling import ScoredRun


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
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Count only pairs that meet it, such as 'unigram_f1 <= 0.7'; repeatable.",
        ),
    ] = None,
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
    names = scorers.split(",") if scorers else []
    if run is not None:
        connect(beam_options(context), [run])
        pairs, seed = _of_run(run, names, where or [])
    else:
        named = dict(map(_named, resource or []))
        pairs, seed = _of_file(str(labels), names, named, where or []), 1
    found = measure(pairs, good=good, precisions=list(dict.fromkeys(wanted)), seed=seed)
    _show(found)
    if run is not None:
        for line in corpus_precisions(run, ScoredRun(run).record, good).values():
            console().print(f"{line}.")
    write_json(json, found.model_dump())


def _of_run(folder: str, names: list[str], where: list[str]) -> tuple[JudgedPairs, int]:
    run = ScoredRun(folder)
    run.check(names, "--scorers")
    judgments = read_judgments(folder)
    if not judgments:
        raise UserError(f"{folder}: has no judgments yet; run `paraloom judge {folder}`")
    own, under = run.record.own_scorers, conditions(where, run.scores, run.record.config.kept)
    pairs = join(judgments, run.shards(), names or run.scores, own=own, where=under)
    return pairs, run.record.config.seed


def _of_file(
    path: str, names: list[str], resources: dict[str, str], where: list[str]
) -> JudgedPairs:
    entries = names or [
        *default_names(),
        *(n for n, s in SCORERS.items() if s.resource and s.resource.name in resources),
    ]
    own = ("translation_score", *SCORERS)
    foreign = [e for e in entries if e not in own and (column_of(e) != e or e in installed())]
    return score_labels(
        read_labels(path),
        [column_of(entry) for entry in entries],
        sources=[source_of(entry) for entry in foreign],
        language=ENGLISH,
        resources=resources,
        where=where,
    )


def _named(entry: str) -> tuple[str, str]:
    name, equals, path = entry.partition("=")
    if not (name and equals and path):
        raise UserError(f"--resource {entry}: must be NAME=PATH")
    return name, path


def _show(found: AgreementRecord) -> None:
    scores = by_agreement(found.scores)
    out = console(max(100, 12 + sum(3 + max(len(name), 16) for name in scores)))
    out.print(f"{counts_line(found)}.")
    title, numbers = "Agreement with the labels", ["Spearman", "95%"]
    rows = (
        (name, number_in_words(of.spearman), interval_in_words(of.interval), of.better)
        for name, of in scores.items()
    )
    out.print(number_table(title, "score", numbers=numbers, after=["better is"], rows=rows))
    few = "Too few judged pairs for the shares of good ones by decile: fewer than 10 in a decile."
    out.print(few if found.pairs < 100 else _deciles(found))
    for cut in found.cuts:
        out.print()
        for line in cut_lines(cut, found.rows):
            out.print(line)
        if cut.reached:
            out.print(select_lines(cut, found.where))
    if not found.cuts:
        out.print("No cut can be measured: no score has a judged pair in its best decile.")
    for name, reason in found.left_out.items():
        out.print(f"Left out: {name}, which {reason}.")


def _deciles(found: AgreementRecord) -> Table:
    scores = by_agreement(found.scores)
    rows = (
        [str(decile), *(good_of(of.good[decile], of.judged[decile]) for of in scores.values())]
        for decile in range(10)
    )
    title, numbers = "Share of good pairs by decile", ["decile", *scores]
    table = number_table(title, numbers=numbers, rows=rows)
    table.caption = "95% intervals by Wilson"
    return table
