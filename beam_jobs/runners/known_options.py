"""Options that Beam does not know, which it ignores: they are refused."""

import argparse
import difflib
from collections.abc import Sequence

from paraloom.beam_jobs.runners.dataflow import RUNNER
from paraloom.models.errors import UserError


def check_known(
    arguments: Sequence[str], parser: argparse.ArgumentParser, runner: str | None
) -> None:
    """Check that Beam knows the options; it ignores others.

    A runner with a job server may have options that only the server knows: there, only a name that
    is nearly one of Beam's is refused.

    Args:
        parser: of all options that Beam knows.
    """
    served = runner not in (None, "", "DirectRunner", "FnApiRunner", RUNNER)
    known = [name for action in parser._actions for name in action.option_strings]
    last = ""
    for argument in parser.parse_known_args(arguments)[1]:
        name = argument.partition("=")[0]
        if name.startswith("-"):
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.85 if served else 0.6)
            if near or not served:
                hint = f"; did you mean {' or '.join(near)}?" if near else ""
                raise UserError(f"Beam options: {name}: no such option{hint}")
        elif not last.startswith("-") or "=" in last:
            raise UserError(f"Beam options: {argument}: belongs to no option")
        last = argument
