"""`paraloom judge`: a page on which people judge pairs of a run; judgments made elsewhere.

What it needs is imported when it runs: --help need not wait for Beam.
"""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from paraloom.models.errors import UserError
from paraloom.models.languages import direction, short_code
from paraloom.models.printing import show

if TYPE_CHECKING:
    from paraloom.pipeline.judging.sampling import Pair, ScoredRun
    from paraloom.pipeline.judging.server import JudgingServer, Scale


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run folder on this machine.")],
    judge: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the judge; by default the page asks.")
    ] = "",
    pairs: Annotated[int, typer.Option(metavar="N", min=1, help="Pairs to judge.")] = 200,
    scores: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Scores over whose deciles the pairs are spread; by default all."
        ),
    ] = "",
    scale: Annotated[
        Literal["0-100", "yes-no"],
        typer.Option(help="Common meaning from 0 to 100, or same meaning yes or no."),
    ] = "0-100",
    port: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=65535, help="Port of the page.")
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    file: Annotated[
        str | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Add the judgments of a TSV file instead of serving the page.",
        ),
    ] = None,
) -> None:
    """Serve a page on this machine, with keys for everything, until Ctrl-C.

    The pairs are spread evenly over the deciles of the scores; judges do not see scores. Every
    judgment is in RUN/judgments before the next pair appears.
    """
    from paraloom.pipeline.judging.judgments import checked_name, judging
    from paraloom.pipeline.judging.sampling import ScoredRun, sample_pairs

    if judge:
        checked_name(judge)
    with judging(run):
        found = ScoredRun(run)
        if file is not None:
            _import(found, file)
        else:
            names = [name.strip() for name in scores.split(",") if name.strip()]
            sample = sample_pairs(found, pairs, names)
            server = judging_server(found, sample, scale, judge, port)
            _print_judges(run)
            show(f"{len(sample):,} pairs to judge at {server.url}")
            show("Ctrl-C stops; every judgment is saved at once")
            if open:
                webbrowser.open(server.url)
            server.serve()
            show()
        _print_judges(run)


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
    given, language = run.record.config.input, run.record.language
    source = short_code(given.source_language) if given else ""
    return JudgingServer(
        Session(run.folder, sample, scale),
        port,
        judge=judge,
        run_name=PurePath(run.folder).name or run.folder,
        language=language,
        direction=direction(language),
        source_language=source,
        source_direction=direction(source),
    )


def _import(run: ScoredRun, file: str) -> None:
    from paraloom.pipeline.judging.import_file import import_judgments

    done = import_judgments(run, file)
    show(f"{file}: judgments added: {done.added:,}, there already: {done.unchanged:,}")
    if done.unknown:
        first = done.unknown[0]
        show(
            f"{file}: rows that are not of a pair of the run: {len(done.unknown):,}, the first is "
            f"row {first.number}: {first.id or first.reference}"
        )


def _print_judges(run: str) -> None:
    from paraloom.pipeline.judging.describe import describe_judges
    from paraloom.pipeline.judging.judgments import read_judgments

    for line in describe_judges(read_judgments(run)):
        show(line)
