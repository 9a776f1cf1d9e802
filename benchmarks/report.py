"""What benchmarks share: the command line, the captions of Multi30k, and the printed figures."""

import gzip
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
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
    """Call `main` with its parameters as command-line options, and print a `UserError` as one line.

    The process exits with status 2 after a `UserError`.
    """
    try:
        typer.run(main)
    except UserError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(2)


def read_side(language: str, folder: Path = DATA / "multi30k", name: str = "train") -> list[str]:
    """Read the captions of Multi30k in one language: `cs`, `en` or `fr`.

    Raises:
        UserError: the file is missing.
    """
    path = folder / f"{name}.{language}.gz"
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; set PARALOOM_DATA")
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def print_table(
    title: str | None, names: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table with left-aligned columns `names` and right-aligned columns `numbers`."""
    console(240).print(number_table(title, *names, numbers=numbers, rows=rows))


class Measured:
    """Figures and ratios of one benchmark."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.figures: dict[str, float] = {}
        self.ratios: dict[str, float] = {}

    def add(self, name: str, value: float) -> None:
        """Add a measured figure."""
        self.figures[name] = value

    def ratio(self, name: str, value: float, against: float) -> None:
        """Add the ratio of two values that were measured in the same run."""
        self.ratios[name] = value / against

    def done(self, name: str) -> None:
        """Print the figures and write them to `results/<name>.json`."""
        rows = [(n, f"{v:,.2f}" if abs(v) < 100 else f"{v:,.0f}") for n, v in self.figures.items()]
        rows += [(what, f"{value:.2f} ×") for what, value in self.ratios.items()]
        console(100).print(number_table(self.title, "figure", numbers=["measured"], rows=rows))
        content = {
            "title": self.title,
            "figures": self.figures,
            "ratios": self.ratios,
            "machine": {"cores": len(os.sched_getaffinity(0)), "platform": platform.platform()},
        }
        RESULTS.mkdir(exist_ok=True)
        with atomic_file(RESULTS / f"{name}.json") as path:
            path.write_text(json.dumps(content, indent=1))
