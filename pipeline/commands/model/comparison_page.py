"""The page of `paraloom evaluate --html`: models side by side, quality against speed."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from paraloom.models.embeddings.applications.cost_table import Cost, cost_rows, megabytes
from paraloom.models.embeddings.applications.evaluation import Report
from paraloom.models.embeddings.applications.protocols import PROTOCOLS
from paraloom.pipeline.report.plots import WIDTH, Scale, padded
from paraloom.pipeline.report.render import render_html

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
    points: list[tuple[int, float, float, str]]
    """Number of the model, from 1; place in the picture; anchor of the number."""


def comparison_page(report: Report, costs: Sequence[Cost], how: str) -> str:
    """One page of HTML without other files; `how` says how the costs [models] were measured."""
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
            ["–" if math.isnan(of[i]) else f"{of[i]:.1f}" for of in overall.values()],
            [f"{cost.speed:,.0f}", megabytes(cost.size), megabytes(cost.memory)],
        )
        for i, cost in enumerate(costs)
    ]
    page = render_html(
        "comparison.html.j2",
        names=names,
        protocols=[_COLUMNS[protocol] for protocol in overall],
        plots=[_plot(protocol, values, costs) for protocol, values in overall.items()],
        benchmarks=[each.name for each in report.benchmarks],
        summary=summary,
        sections=[*report.sections(), cost_rows(costs)],
        meaning=report.meaning().split("\n"),
        how=how,
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


def _plot(protocol: str, quality: Sequence[float], costs: Sequence[Cost]) -> Plot:
    shown = [i for i, value in enumerate(quality) if not math.isnan(value)]
    speeds = {i: math.log10(costs[i].speed) for i in shown}
    y = padded([quality[i] for i in shown] or [0.0], 200, 8)
    ends = min(speeds.values(), default=0.0) - 0.25, max(speeds.values(), default=0.0) + 0.25
    x = Scale(*ends, 46, WIDTH - 20)
    # Neighbours have their numbers on different sides.
    points = [
        (i + 1, x.at(speeds[i]), y.at(quality[i]), "end" if rank % 2 else "start")
        for rank, i in enumerate(sorted(shown, key=speeds.__getitem__))
    ]
    return Plot(protocol, _TITLES[protocol], PROTOCOLS[protocol], x, y, points)
