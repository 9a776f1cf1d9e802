"""`paraloom judge`: a page on which people judge pairs of a run.

Beam and Flask are imported when the command runs, so that --help does not wait for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from paraloom.models.errors import UserError
from paraloom.models.languages import short_code
from paraloom.models.printing import show
from paraloom.pipeline.commands.options import Named, argument, option

if TYPE_CHECKING:
    from paraloom.pipeline.judging.sampling import Pair, ScoredRun
    from paraloom.pipeline.judging.server import JudgingServer, Scale


def command(
    run: Annotated[str, argument("RUN", "Run folder on this machine.")],
    judge: Annotated[str, option("NAME", "Name of the judge; by default the page asks.")] = "",
    pairs: Annotated[int, option("N", "Pairs to judge.", "--pairs", "--size", min=1)] = 200,
    selected: Annotated[
        bool | None,
        typer.Option(
            "--selected/--rejected",
            help="Random pairs of the corpus, for its precision; or pairs that missed one "
            "condition, the nearest first.",
        ),
    ] = None,
    selection: Named = "",
    generators: Annotated[
        bool, typer.Option("--generators", help="Spread the pairs over the generators, too.")
    ] = False,
    scale: Annotated[
        Literal["0-100", "yes-no"],
        typer.Option(help="Common meaning from 0 to 100, or same meaning yes or no."),
    ] = "0-100",
    port: Annotated[int | None, option("N", "Port of the page.", min=1, max=65535)] = None,
) -> None:
    """Serve a page on this machine, with keys for everything, until Ctrl-C.

    The pairs are spread evenly over the deciles of the scores, or with --selected drawn from the
    corpus; judges see neither scores nor generators. Every judgment is in RUN/judgments before the
    next pair appears.
    """
    from paraloom.pipeline.judging.cuts import wilson
    from paraloom.pipeline.judging.judgments import checked_name, judging
    from paraloom.pipeline.judging.sampling import ScoredRun, sample_pairs

    if judge:
        checked_name(judge)
    if selected is None and selection:
        raise UserError("judge: --selection is for --selected or --rejected")
    with judging(run):
        found = ScoredRun(run)
        if selected is None:
            sample = sample_pairs(found, pairs, generators=generators)
        else:
            sample = _of_corpus(found, pairs, selection, selected)
        server = judging_server(found, sample, scale, judge, port)
        _print_judges(found)
        if selected is not False:  # rejected pairs are no sample of the corpus
            low, high = wilson(0.8 * (n := len(sample)), n)
            show(f"{n:,} pairs: a precision of 80% is known to ±{50 * (high - low):.0f}")
        show(f"{len(sample):,} pairs to judge at {server.url}")
        show("Ctrl-C stops; every judgment is saved at once")
        server.serve()
        show()
        _print_judges(found)


def _of_corpus(run: ScoredRun, pairs: int, selection: str, selected: bool) -> list[Pair]:
    """Random pairs of a finished corpus, or pairs that just missed it."""
    from paraloom.pipeline.judging.sampling import sample_corpus
    from paraloom.pipeline.pages.describe import resolve_auto
    from paraloom.pipeline.pages.tradeoffs import criteria_of
    from paraloom.pipeline.run.folder import finished_corpus, started

    corpus = finished_corpus(run.folder, started(run.folder), selection)
    view = corpus if selection else run.record.best
    missed = None if selected else criteria_of(resolve_auto(view))
    return sample_corpus(run, pairs, corpus.path("select"), missed)


def judging_server(
    run: ScoredRun,
    sample: Sequence[Pair],
    scale: Scale = "0-100",
    judge: str = "",
    port: int | None = None,
) -> JudgingServer:
    """The server of the page for a sample of a run's pairs."""
    from paraloom.pipeline.judging.server import JudgingServer, Session

    if not sample:
        raise UserError(f"{run.folder}: no pair with two different sides, so nothing to judge")
    given, language = run.record.config.input, run.record.config.language
    source = short_code(given.source_language) if given else ""
    return JudgingServer(
        Session(run.folder, sample, scale),
        port,
        judge=judge,
        run_name=PurePath(run.folder).name or run.folder,
        language=language,
        source_language=source,
    )


def _print_judges(run: ScoredRun) -> None:
    from paraloom.pipeline.judging.agreement import corpus_precisions
    from paraloom.pipeline.judging.describe import describe_judges
    from paraloom.pipeline.judging.judgments import read_judgments

    lines = describe_judges(read_judgments(run.folder))
    for line in [*lines, *corpus_precisions(run.folder, run.record).values()]:
        show(line)
