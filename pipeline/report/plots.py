"""The pictures of the report."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeline.report.auto_select import Choice
from pipeline.report.describe import score, spoken
from pipeline.report.report_data import Density, Histogram, Interval, Region
from pipeline.report.svg import WIDTH, Frame, Scale, element, picture, shown, text

_LEVELS = 6  # shades of the density
_LINE = 15  # units between two lines of text
_LETTER = 7.2  # width of a letter, of a wide typeface


class Step(NamedTuple):
    """A stage in the way of the rows."""

    name: str
    rows_in: int
    rows_out: int
    rejected: dict[str, int]


def flow(steps: Sequence[Step], *, name: str, width: int = WIDTH) -> str:
    """The way of the rows, downwards: a bar a stage, as wide as the rows that come in.

    The dark part goes on to the next stage; the other parts, one a reason, end there. `width` is
    in the same units; of it, three tenths are bars and the rest is text.
    """
    bars = 0.3 * width
    column = bars + 20
    letters = int((width - column) / _LETTER)
    most = max((step.rows_in for step in steps), default=1) or 1
    scale = Scale(0, most, 0, bars)
    drawn: list[str] = []
    top = 4.0
    for number, step in enumerate(steps):
        lines = [(f"{spoken(step.name)}", "name")]
        lines.append((f"{step.rows_in:,} in, {step.rows_out:,} on", ""))
        for reason, rows in step.rejected.items():
            said = f"− {rows:,} ({percent(rows, step.rows_in)}) {reason}"
            lines += [(line, "lost") for line in textwrap.wrap(said, letters)]
        bottom = top + max(len(lines) * _LINE + 12, 58)
        on = scale.at(step.rows_out)
        if number + 1 < len(steps):
            drawn.append(
                element("rect", x=0, y=top + 14, width=on, height=bottom - top - 14, class_="band")
            )
        drawn.append(element("rect", x=0, y=top, width=on, height=14, class_="corpus"))
        left = on
        for rows in step.rejected.values():
            drawn.append(_ending(left, scale.at(rows), top))
            left += scale.at(rows)
        for i, (line, kind) in enumerate(lines):
            drawn.append(text(column, top + 12 + i * _LINE, line, class_=kind or "plain"))
        top = bottom
    said = "; ".join(f"{s.name}: {s.rows_in:,} rows in, {s.rows_out:,} on" for s in steps)
    title = "The way of the rows from the input to the corpus"
    return picture(drawn, height=top, name=name, title=title, saying=said, width=width)


def _ending(left: float, width: float, top: float) -> str:
    """Rows that end at a stage: a part of its bar that tapers off below."""
    width = max(width, 1.0)
    fall, half = min(12.0, width), width / 2
    path = f"M{left:.2f} {top:.2f}h{width:.2f}v14l{-half:.2f} {fall:.2f}l{-half:.2f} {-fall:.2f}z"
    return element("path", d=path, class_="lost")


def histogram(of: str, data: Histogram, selected: Sequence[Interval], *, name: str) -> str:
    """Counts of a score, what of them is in the corpus, and the decile bounds.

    Args:
        selected: values of this score that the configuration selects.
    """
    height, base = 220, 180
    top = max(int(data.pairs.max()), 1)
    frame = Frame(
        Scale(data.edges[0], data.edges[-1], 52, WIDTH - 10), Scale(0, top * 1.04, base, 30)
    )
    drawn = []
    for low, high in selected:
        left, right = frame.x.held(low), frame.x.held(high)
        width = max(right - left, 2.0)
        drawn.append(element("rect", x=left, y=21, width=width, height=base - 21, class_="chosen"))
    drawn += _bars(frame, data.edges, data.pairs, "pairs")
    drawn += _bars(frame, data.edges, data.corpus, "corpus")
    for value in data.bounds:
        x = frame.x.held(value)
        drawn.append(element("line", x1=x, x2=x, y1=22, y2=base, class_="bound"))
    ends = [data.edges[0], *data.bounds, data.edges[-1]]
    drawn.append(text(frame.x.start - 7, 18, "decile", anchor="end"))
    for decile, (low, high) in enumerate(pairwise(ends)):
        left, right = frame.x.held(low), frame.x.held(high)
        drawn.append(element("rect", x=left, y=7, width=right - left, height=14, class_="ruler"))
        if right - left >= 11:
            middle = (left + right) / 2
            drawn.append(text(middle, 18, str(decile), anchor="middle"))
    drawn += frame.axes(score(of).unit, "pairs")
    saying = f"Deciles begin at {', '.join(f'{value:.3f}' for value in data.bounds)}."
    title = f"Histogram of {spoken(of)}"
    return picture(drawn, height=height, name=name, title=title, saying=saying)


def _bars(frame: Frame, edges: np.ndarray, counts: np.ndarray, kind: str) -> list[str]:
    lefts = [frame.x.at(edge) for edge in edges]
    path = "".join(
        f"M{left:.1f} {frame.y.start}V{frame.y.at(count):.1f}H{right:.1f}V{frame.y.start}z"
        for left, right, count in zip(lefts[:-1], lefts[1:], counts, strict=True)
        if count
    )
    return [element("path", d=path, class_=kind)] if path else []


def density(data: Density, counts: np.ndarray, region: Region, *, of: str, name: str) -> str:
    """Counts over two scores as shades, a step a multiple; the selected region outlined.

    Args:
        counts: int [x, y], of `data.pairs` or `data.corpus`.
        region: intervals of the scores; those of other scores than the two are not drawn.
        of: what is counted.
    """
    frame = Frame(
        Scale(data.x_edges[0], data.x_edges[-1], 52, WIDTH - 10),
        Scale(data.y_edges[0], data.y_edges[-1], 306, 36),
    )
    steps = levels(int(data.pairs.max()))
    level = np.searchsorted(steps, counts, side="right")
    x, y = [frame.x.at(e) for e in data.x_edges], [frame.y.at(e) for e in data.y_edges]
    drawn = [text(frame.x.start, 19, "pairs a cell, from", class_="plain")]
    for shade, least in enumerate(steps, 1):
        cells = "".join(
            f"M{x[i]:.1f} {y[j]:.1f}H{x[i + 1]:.1f}V{y[j + 1]:.1f}H{x[i]:.1f}z"
            for i, j in np.argwhere(level == shade)
        )
        if cells:
            drawn.append(element("path", d=cells, class_=f"shade shade{shade}"))
        left = WIDTH - 10 - 30 * (len(steps) - shade + 1)
        drawn.append(element("rect", x=left, y=2, width=30, height=9, class_=f"shade shade{shade}"))
        drawn.append(text(left + 15, 22, shown(least), anchor="middle"))
    for low, high in _box(region, data.x):
        for bottom, ceiling in _box(region, data.y):
            if data.x in region or data.y in region:
                drawn.append(_outline(frame, (low, high), (bottom, ceiling)))
    drawn += frame.axes(_titled(data.x), _titled(data.y))
    title = f"{spoken(data.y)} against {spoken(data.x)}: {of}"
    saying = f"{int(counts.sum()):,} pairs; the fullest cell has {int(counts.max()):,}."
    return picture(drawn, height=344, name=name, title=title, saying=saying)


def levels(most: int) -> list[int]:
    """Least counts of the shades: 1 and on by a constant factor, whole and increasing.

    >>> levels(64)
    [1, 2, 4, 8, 16, 32]
    """
    raw = [max(most, 1) ** (k / _LEVELS) for k in range(_LEVELS)]
    return sorted({max(round(value), 1) for value in raw})


def _box(region: Region, axis: str) -> list[Interval]:
    return region.get(axis, [(-np.inf, np.inf)])


def _outline(frame: Frame, x: Interval, y: Interval) -> str:
    left, right = (frame.x.held(value) for value in x)
    bottom, top = (frame.y.held(value) for value in y)
    return element(
        "rect",
        x=left,
        y=top,
        width=max(right - left, 1.0),
        height=max(bottom - top, 1.0),
        class_="region",
    )


def _titled(name: str) -> str:
    return f"{spoken(name)} ({score(name).unit})"


def curve(choice: Choice, scorer: str, *, name: str) -> str:
    """The labelled sample over the deciles of a scorer: mean over seeds, and their range.

    The band is a random sample of the same size; all curves of a choice have one y axis.
    """
    everything = [
        *choice.random,
        *(v for s in choice.scores.values() for d in s.values() for v in d),
    ]
    low, high = min(everything), max(everything)
    room = 0.08 * (high - low) or 1.0
    frame = Frame(Scale(-0.5, 9.5, 52, WIDTH - 10), Scale(low - room, high + room, 180, 12))
    drawn: list[str] = []
    if scorer == choice.chosen.scorer:
        deciles = choice.chosen.deciles
        left, right = frame.x.at(deciles[0] - 0.5), frame.x.at(deciles[-1] + 0.5)
        drawn.append(element("rect", x=left, y=12, width=right - left, height=168, class_="chosen"))
    if choice.random:
        top, bottom = frame.y.at(max(choice.random)), frame.y.at(min(choice.random))
        at = frame.y.at(float(np.mean(choice.random)))
        drawn.append(
            element(
                "rect",
                x=frame.x.start,
                y=top,
                width=frame.x.end - frame.x.start,
                height=max(bottom - top, 1.0),
                class_="random",
            )
        )
        drawn.append(
            element("line", x1=frame.x.start, x2=frame.x.end, y1=at, y2=at, class_="random")
        )
    points = []
    for decile, values in sorted(choice.scores[scorer].items()):
        x, mean = frame.x.at(decile), frame.y.at(float(np.mean(values)))
        points.append(f"{x:.1f},{mean:.1f}")
        least, most = frame.y.at(min(values)), frame.y.at(max(values))
        drawn.append(element("line", x1=x, x2=x, y1=least, y2=most, class_="spread"))
        drawn.append(element("circle", cx=x, cy=mean, r=3, class_="point"))
    drawn.append(element("polyline", points=" ".join(points), class_="curve"))
    drawn += frame.axes(f"decile of {spoken(scorer)}", "Pearson × 100")
    means = ", ".join(f"{d}: {np.mean(v):.1f}" for d, v in sorted(choice.scores[scorer].items()))
    title = f"The labelled sample over the deciles of {spoken(scorer)}"
    return picture(drawn, height=220, name=name, title=title, saying=f"Means: {means}.")


def percent(part: int, whole: int) -> str:
    """A share in words.

    >>> percent(1, 3), percent(1, 1000)
    ('33%', '0.1%')
    """
    share = 100 * part / max(whole, 1)
    return f"{share:.0f}%" if share >= 1 or not part else f"{share:.1g}%"
