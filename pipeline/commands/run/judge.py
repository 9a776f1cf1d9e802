"""`paraloom judge`: a page on which people judge pairs of a run.

Beam and Flask are imported when the command runs, so that --help does not wait for them.
"""

from typing import Annotated, Literal

import typer

from paraloom.models.errors import UserError
from paraloom.models.printing import show
from paraloom.pipeline.commands.options import Named, argument, option


def command(
    run: Annotated[str, argument("RUN", "Run folder on this machine.")],
    judge: Annotated[str, option("NAME", "Name of the judge; by default the page asks.")] = "",
    pairs: Annotated[int, option("N", "Pairs to judge.", "--pairs", "--size", min=1)] = 200,
    selected: Annotated[
        bool | None,
        typer.Option(
            "--selected/--rejected",
            help="Judge random pairs of the corpus, for its precision; or pairs that fail only one "
            "condition, the closest first.",
        ),
    ] = None,
    selection: Named = "",
    generators: Annotated[
        bool, typer.Option("--generators", help="Also spread the pairs evenly over the generators.")
    ] = False,
    scale: Annotated[
        Literal["0-100", "yes-no"],
        typer.Option(help="Labels: shared meaning from 0 to 100, or same meaning, yes or no."),
    ] = "0-100",
    port: Annotated[int | None, option("N", "Port of the page.", min=1, max=65535)] = None,
) -> None:
    """Serve a page on this machine until Ctrl-C. Every action on the page has a key.

    By default the pairs are spread evenly over the deciles of the scores. Judges see neither scores
    nor generators. Every judgment is in RUN/judgments before the next pair appears.
    """
    from paraloom.pipeline.judging.agreement import judge_lines
    from paraloom.pipeline.judging.cuts import wilson
    from paraloom.pipeline.judging.judgments import checked_name, judging
    from paraloom.pipeline.judging.sampling import ScoredRun, sample_pairs, sample_selection
    from paraloom.pipeline.judging.server import judging_server

    if judge:
        checked_name(judge)
    if selected is None and selection:
        raise UserError("judge: --selection needs --selected or --rejected")
    with judging(run):
        found = ScoredRun(run)
        if selected is None:
            sample = sample_pairs(found, pairs, generators=generators)
        else:
            sample = sample_selection(found, pairs, selection, selected=selected)
        server = judging_server(found, sample, scale, judge, port)
        for line in judge_lines(run, found.record):
            show(line)
        if selected is not False:  # rejected pairs are no sample of the corpus
            low, high = wilson(0.8 * (n := len(sample)), n)
            show(f"{n:,} pairs: a precision of 80% is known to ±{50 * (high - low):.0f}")
        show(f"{len(sample):,} pairs to judge at {server.url}")
        show("Ctrl-C stops; every judgment is saved at once")
        server.serve()
        show()
        for line in judge_lines(run, found.record):
            show(line)
