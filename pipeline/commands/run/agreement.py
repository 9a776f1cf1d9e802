"""`paraloom agreement`: compares scores with people's labels, and finds good deciles."""

from typing import Annotated

import typer

from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.engine.shards import read_shard
from paraloom.models.errors import UserError, reading
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import (
    JsonFile,
    argument,
    beam_options,
    check_unused,
    option,
    write_json,
)
from paraloom.pipeline.config.selection import SelectOptions
from paraloom.pipeline.judging import describe
from paraloom.pipeline.judging.agreement import (
    JudgedPairs,
    conditions,
    corpus_counts,
    join,
    measure,
    score_labels,
)
from paraloom.pipeline.judging.cuts import ENOUGH, AgreementRecord
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.sampling import ScoredRun

_USUAL = SelectOptions()  # the defaults of --precision and, with --labels, of --good


class Agreement(AgreementRecord):
    """The JSON form of `paraloom agreement`."""

    corpora: dict[str, tuple[int, int]]  # for each corpus, the numbers of good and judged pairs


def command(
    context: typer.Context,
    run: Annotated[str | None, argument("[RUN]", "Run folder with judgments.")] = None,
    labels: Annotated[
        str | None,
        option(
            "FILE",
            "Instead of a run, read a file of labelled pairs: STS, SICK, or TSV with the columns "
            "reference, paraphrase, score.",
        ),
    ] = None,
    scorers: Annotated[str, option("A,B", "Use only these scores.")] = "",
    resource: Annotated[
        list[str] | None,
        option(
            "NAME=PATH",
            "With --labels: a path that a scorer needs, such as sentence_model=DIR. Repeatable.",
        ),
    ] = None,
    precision: Annotated[
        list[float] | None,
        option("P", f"Least precision of a cut. Repeatable. Default: {_USUAL.precision:g}."),
    ] = None,
    good: Annotated[
        float | None,
        option(
            "LABEL",
            "Least label of a good pair, from 0 to 100. Default: the run's select.good, or "
            f"{_USUAL.good:g} with --labels.",
            min=0.01,
            max=100,
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        option(
            "CONDITION",
            "Use only pairs that meet a condition, such as 'unigram_f1 <= 0.7'. Repeatable.",
        ),
    ] = None,
    json: JsonFile = None,
) -> None:
    """For each score, print its correlation with the labels and the share of good pairs by decile.

    A cut keeps the best deciles of a score. For each --precision, print the largest cut that is
    sure to reach this precision, or the best cut if none is.
    """
    wanted = list(dict.fromkeys(precision or [_USUAL.precision]))
    if not all(0 < p < 1 for p in wanted):
        raise UserError("--precision: must be between 0 and 1, such as 0.9")
    names, corpora = [name for name in scorers.split(",") if name], {}
    usual = _USUAL.good
    if run is not None and labels is None:
        check_unused(context, "--labels", "resource")
        connect(beam_options(context), [run])
        scored = ScoredRun(run)
        pairs = _of_run(scored, names, where or [])
        corpora = corpus_counts(run, scored.record, good or 0)
        usual = scored.record.config.select.good
    elif labels is not None and run is None:
        paths = {}
        for entry in resource or []:
            name, _, path = entry.partition("=")
            if not (name and path):
                raise UserError(f"--resource {entry}: must be NAME=PATH")
            paths[name] = path
        pairs = score_labels(labels, names, resources=paths, where=where or [])
    else:
        raise UserError("agreement: give either a run folder with judgments or --labels FILE")
    found = measure(pairs, good=good or usual, precisions=wanted)
    _show(found)
    for place, counts in corpora.items():
        console().print(f"{describe.precision_line(place, *counts)}.")
    write_json(json, Agreement(**found.model_dump(), corpora=corpora))


def _of_run(run: ScoredRun, names: list[str], where: list[str]) -> JudgedPairs:
    if unknown := [name for name in names if name not in run.scores]:
        has = ", ".join(run.scores)
        raise UserError(f"--scorers: the run has no score {unknown[0]!r}; its scores are {has}")
    judgments = read_judgments(run.folder)
    if not judgments:
        raise UserError(f"{run.folder}: has no judgments yet; run `paraloom judge {run.folder}`")
    kept = run.record.config.kept
    under = conditions(where, run.scores, kept)
    with reading("--where"):
        for name, condition in ((of.column, of) for of in under if of.column in kept):
            condition.check_type(read_shard(run.shards()[0], [name])[name].type)
    own = run.record.own_scorers
    return join(judgments, run.shards(), names or run.scores, own=own, where=under)


def _show(found: AgreementRecord) -> None:
    scores = describe.by_agreement(found.scores)
    out = console(max(100, 12 + sum(3 + max(len(name), 16) for name in scores)))
    out.print(f"{describe.counts_line(found)}.")
    agreement = number_table(
        "Agreement with the labels", "score", numbers=["Spearman", "95%"], after=["better is"]
    )
    for name, of in scores.items():
        interval = describe.interval_in_words(of.interval)
        better = "higher" if of.higher_is_better else "lower"
        agreement.add_row(name, describe.number_in_words(of.spearman), interval, better)
    out.print(agreement)
    if found.references < ENOUGH:
        out.print(f"An interval needs {ENOUGH} judged references.")
    if found.pairs < 100:
        out.print("The shares of good pairs by decile need 100 judged pairs.")
    else:
        shares = number_table("Good and judged pairs by decile", numbers=["decile", *scores])
        for decile in range(10):
            cells = (describe.good_of(of.good[decile], of.judged[decile]) for of in scores.values())
            shares.add_row(f"{decile}", *cells)
        out.print(shares)
    for cut in found.cuts:
        out.print("", *describe.cut_lines(cut, found.rows), sep="\n")
        if cut.reached:
            out.print(describe.select_lines(cut, found.where))
    if not found.cuts:
        out.print("No cut can be measured, because no score has a judged pair in its best decile.")
