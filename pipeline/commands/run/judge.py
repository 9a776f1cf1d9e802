"""`paraloom judge`: serves a page on which people judge pairs of a run."""

from typing import Annotated, Literal

import typer

from paraloom.models.errors import UserError
from paraloom.models.printing import show
from paraloom.pipeline.commands.options import Named, argument, check_unused, option


def command(
    context: typer.Context,
    run: Annotated[str, argument("RUN", "Run folder on this machine.")],
    judge: Annotated[str, option("NAME", "Name of the judge. Default: the page asks for it.")] = "",
    pairs: Annotated[
        int, option("N", "Number of pairs to judge.", "--pairs", "--size", min=1)
    ] = 200,
    selected: Annotated[
        bool | None,
        typer.Option(
            "--selected/--rejected",
            help="--selected: judge random pairs of the corpus, to measure its precision. "
            "--rejected: judge pairs that fail exactly one condition. The pairs nearest to the "
            "condition's bound come first.",
        ),
    ] = None,
    selection: Named = "",
    generators: Annotated[
        bool, typer.Option("--generators", help="Also spread the pairs evenly over the generators.")
    ] = False,
    scale: Annotated[
        Literal["0-100", "yes-no"],
        typer.Option(
            help="0-100: judge how much of the meaning is shared. yes-no: judge only whether the "
            "meaning is the same."
        ),
    ] = "0-100",
    port: Annotated[
        int | None,
        option(
            "N",
            "Port of the page. Default: 51397 if it is free, else any free port.",
            min=1,
            max=65535,
        ),
    ] = None,
) -> None:
    """Serve a page on this machine until Ctrl-C. Each action on the page has a keyboard key.

    By default, the pairs are spread evenly over the deciles of all scores. The page shows neither
    scores nor generators. Each judgment is saved in RUN/judgments before the next pair is shown.
    """
    # Beam and Flask are slow to import, and --help does not need them.
    from paraloom.pipeline.judging.agreement import judge_lines
    from paraloom.pipeline.judging.cuts import wilson
    from paraloom.pipeline.judging.judgments import checked_name, judging
    from paraloom.pipeline.judging.sampling import ScoredRun, sample_pairs, sample_selection
    from paraloom.pipeline.judging.server import JudgingServer

    if judge:
        checked_name(judge)
    if selected is None and selection:
        raise UserError("judge: --selection needs --selected or --rejected")
    if selected is not None:
        check_unused(context, "the default sample; omit --selected or --rejected", "generators")
    with judging(run):
        found = ScoredRun(run)
        if selected is None:
            sample = sample_pairs(found, pairs, generators=generators)
        else:
            sample = sample_selection(found, pairs, selection, selected=selected)
        server = JudgingServer(found, sample, scale, judge, port)
        for line in judge_lines(run, found.record):
            show(line)
        if selected:  # other samples are no random pairs of the corpus
            low, high = wilson(0.8 * (n := len(sample)), n)
            within = f"±{50 * (high - low):.0f} percentage points"
            show(f"{n:,} pairs would measure a precision of 80% to within {within}")
        show(f"{len(sample):,} pairs to judge at {server.url}")
        show("Ctrl-C stops; each judgment is saved immediately")
        server.serve()
        show()
        for line in judge_lines(run, found.record):
            show(line)
