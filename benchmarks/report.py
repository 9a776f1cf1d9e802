"""The command line of a benchmark, and its figures: a printed table, and a JSON file."""

import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import typer

from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file
from paraloom.pipeline.commands.console import console, number_table

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("PARALOOM_DATA", ROOT.parent / "shared" / "data"))
MODEL = str(DATA.parent / "nmt" / "multi30k-cs-en")


def command_line(main: Callable[..., None]) -> None:
    """Call `main` with its parameters as options of the command line.

    A user's error is one line.
    """
    try:
        typer.run(main)
    except UserError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(2)


class Measured:
    """Figures and ratios under one title."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.figures: dict[str, float] = {}
        self.ratios: dict[str, float] = {}

    def add(self, name: str, value: float) -> None:
        """Add a measured figure."""
        self.figures[name] = value

    def ratio(self, name: str, value: float, against: float) -> None:
        """Add the ratio of `value` to `against`, both measured in this run."""
        self.ratios[name] = value / against

    def done(self, name: str) -> None:
        """Print the figures, and write `results/<name>.json`."""
        rows = [(n, f"{v:,.2f}" if abs(v) < 100 else f"{v:,.0f}") for n, v in self.figures.items()]
        rows += [(what, f"{value:.2f} ×") for what, value in self.ratios.items()]
        console(100).print(number_table(self.title, "figure", numbers=["measured"], rows=rows))
        machine = {"cores": len(os.sched_getaffinity(0)), "platform": platform.platform()}
        content = {
            "title": self.title,
            "figures": self.figures,
            "ratios": self.ratios,
            "machine": machine,
        }
        RESULTS.mkdir(exist_ok=True)
        with atomic_file(RESULTS / f"{name}.json") as path:
            path.write_text(json.dumps(content, indent=1))
