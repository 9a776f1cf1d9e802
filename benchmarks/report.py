"""Shows the figures of a benchmark: a printed table, and a JSON file."""

import json
import os
import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from paraloom.models.files import atomic_file

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("PARALOOM_DATA", ROOT.parent / "shared" / "data"))
MODEL = str(DATA.parent / "nmt" / "multi30k-cs-en")


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

    def done(self, name: str) -> dict[str, Any]:
        """Print the figures, write `results/<name>.json`, and return its content."""
        table = Table("", "", title=self.title, show_header=False)
        table.columns[1].justify = "right"
        for what, value in self.figures.items():
            table.add_row(what, f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}")
        table.add_section()
        for what, value in self.ratios.items():
            table.add_row(what, f"{value:.2f} ×")
        Console(width=100).print(table)
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
        return content
