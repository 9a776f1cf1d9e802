"""The commands that look into what runs have left: phrases of a corpus."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from models.errors import UserError


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add them to `paraloom`'s."""
    phrases = commands.add_parser(
        "phrases",
        help="phrases that a run's pairs say the same with, as PPDB's text",
        description="Write the phrase table of a run's corpus.",
        epilog="What stands after -- goes to Beam. Workers on other machines: let TMPDIR name a "
        "folder that all of them see.",
    )
    phrases.add_argument("run", metavar="RUN", help="run folder")
    phrases.add_argument(
        "--min-count",
        type=int,
        default=2,
        metavar="N",
        help="in fewer places (of the whole corpus) a pair of phrases does not count; default 2",
    )
    phrases.add_argument("--out", metavar="FILE", help="default RUN/phrases.txt.gz")
    phrases.set_defaults(work=_phrases)


def _phrases(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from pipeline.phrases import run

    if options.min_count < 1:
        raise UserError(f"--min-count {options.min_count}: must be at least 1")
    run(options.run, beam, min_count=options.min_count, out=options.out)
