"""The page of `paraloom evaluate --html`: models side by side, quality against speed."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from paraloom.models.embeddings.applications.cost_table import Cost, cost_rows, megabytes
from paraloom.models.embeddings.applications.evaluation import Report
from paraloom.models.embeddings.applications.protocols import PROTOCOLS
from paraloom.pipeline.report.plots import WIDTH, Box, Label, Scale, labels
from paraloom.pipeline.report.render import render_html

_HEIGHT = 240
_LONGEST = 26  # letters of a name in a plot
_GENERIC = ("embeddings", "model")  # names of folders that say nothing of the model
_TITLES = {"papers": "By the papers' protocol", "mteb": "By MTEB's protocol"}
_COLUMNS = {"papers": "papers (Pearson)", "mteb": "MTEB (Spearman)"}


class Plot(NamedTuple):
    """Quality against speed by one protocol."""

    protocol: str
    title: str
    what: str
    x: Scale  # of the logarithm of sentences/s
    y: Scale
    speeds: tuple[float, float]  # the ends of the x axis
    points: list[tuple[float, float]]
    labels: list[Label]


def comparison_page(report: Report, costs: Sequence[Cost], how: str) -> str:
    """One page of HTML without other files.

    Args:
        costs: [models]
        how: how they were measured
    """
    names = short_names(report.models)
    overall = {
        protocol: [report.overall(protocol, model) for model in range(len(names))]
        for protocol in report.protocols
        if report.benchmarks
    }
    summary = [
        (
            names[i],
            report.models[i],
            [_cell(of[i]) for of in overall.values()],
            [f"{cost.speed:,.0f}", megabytes(cost.size), megabytes(cost.memory)],
        )
        for i, cost in enumerate(costs)
    ]
    page = render_html(
        "comparison.html.j2",
        names=names,
        protocols=[_COLUMNS[protocol] for protocol in overall],
        plots=[_plot(protocol, values, costs, names) for protocol, values in overall.items()],
        benchmarks=[each.name for each in report.benchmarks],
        summary=summary,
        sections=[*report.sections(), cost_rows(costs)],
        meaning=report.meaning().split("\n"),
        how=how,
        height=_HEIGHT,
    )
    return str(page)


def short_names(names: Sequence[str]) -> list[str]:
    """The last parts of names, as many as tell them apart, without what says nothing.

    >>> short_names(["runs/a/embeddings", "runs/b/embeddings", "minilm/model", "owner/MiniLM"])
    ['a', 'b', 'minilm', 'MiniLM']
    """
    parts = []
    for name in names:
        found = list(PurePosixPath(name).parts) or [name]
        while len(found) > 1 and found[-1] in _GENERIC and found[-2] not in (".", "/"):
            found.pop()
        parts.append(found)
    for length in range(1, max(map(len, parts)) + 1):
        short = ["/".join(found[-length:]) for found in parts]
        if max(Counter(short).values()) == 1:
            return short
    return list(names)


def _plot(
    protocol: str, quality: Sequence[float], costs: Sequence[Cost], names: Sequence[str]
) -> Plot:
    shown = [i for i, value in enumerate(quality) if not math.isnan(value)]
    speeds = [math.log10(costs[i].speed) for i in shown] or [0.0]
    values = [quality[i] for i in shown] or [0.0]
    low, high = min(speeds) - 0.25, max(speeds) + 0.25
    room = 0.12 * (max(values) - min(values)) or 1.0
    x = Scale(low, high, 46, WIDTH - 6)
    y = Scale(min(values) - room, max(values) + room, _HEIGHT - 40, 8)
    points = [(x.at(speed), y.at(value)) for speed, value in zip(speeds, values, strict=True)]
    texts = [(*at, _cut(names[i])) for at, i in zip(points, shown, strict=False)]
    within = Box(x.start + 3, 0, WIDTH, y.start - 3)
    return Plot(
        protocol,
        _TITLES[protocol],
        PROTOCOLS[protocol],
        x,
        y,
        (10**low, 10**high),
        points if shown else [],
        labels(texts, within),
    )


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


def _cell(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}"
