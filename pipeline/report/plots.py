"""The pictures of the report."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np
from markupsafe import Markup

from pipeline.records import AutoSelectRecord, PairsRecord
from pipeline.report.describe import percent, readable, score
from pipeline.report.report_data import Array, Density, Histogram, Interval, Region
from pipeline.report.svg import (
    WIDTH,
    Frame,
    Scale,
    element,
    line,
    picture,
    rectangle,
    short_number,
    text,
)

_LEVELS = 6  # shades of the density
_LINE = 15  # units between two lines of text
_LETTER = 7.2  # width of a letter of a wide typeface
_RIGHT = WIDTH - 10


def flow(stages: Mapping[str, PairsRecord], *, name: str, width: int = WIDTH) -> Markup:
    """The rows from stage to stage, downwards: the width of a bar is the number of rows read.

    The dark part of a bar goes on to the next stage; the other parts, one for each reason, end.

    Args:
        stages: the pair stages by name, in order.
        width: of the picture, in units; three tenths are for the bars, the rest is for text.
    """
    bars = 0.3 * width
    column = bars + 20
    letters = int((width - column) / _LETTER)
    scale = Scale(0, max(stage.rows_in for stage in stages.values()) or 1, 0, bars)
    drawn: list[Markup] = []
    top = 4.0
    for number, (stage, record) in enumerate(stages.items(), 1):
        lines = [(readable(stage), "name")]
        lines.append((f"{record.rows_in:,} in, {record.rows_out:,} out", "plain"))
        for reason, rows in record.rejected.items():
            words = f"− {rows:,} ({percent(rows, record.rows_in)}) {reason}"
            lines += [(part, "lost") for part in textwrap.wrap(words, letters)]
        bottom = top + max(len(lines) * _LINE + 12, 58)
        left = scale.at(record.rows_out)
        if number < len(stages):
            drawn.append(rectangle(0, top + 14, left, bottom, "band"))
        drawn.append(rectangle(0, top, left, top + 14, "corpus"))
        for rows in record.rejected.values():
            drawn.append(_ending(left, scale.at(rows), top))
            left += scale.at(rows)
        for i, (words, kind) in enumerate(lines):
            drawn.append(text(column, top + 12 + i * _LINE, words, class_=kind))
        top = bottom
    words = "; ".join(
        f"{stage}: {record.rows_in:,} rows in, {record.rows_out:,} rows out"
        for stage, record in stages.items()
    )
    title = "Rows of each stage, from the input to the corpus"
    return picture(drawn, height=top, name=name, title=title, description=words, width=width)


def _ending(left: float, width: float, top: float) -> Markup:
    """Rows that end at a stage: a part of its bar that tapers off below."""
    width = max(width, 1.0)
    fall, half = min(12.0, width), width / 2
    path = f"M{left:.2f} {top:.2f}h{width:.2f}v14l{-half:.2f} {fall:.2f}l{-half:.2f} {-fall:.2f}z"
    return element("path", d=path, class_="lost")


def histogram(of: str, data: Histogram, selected: Sequence[Interval], *, name: str) -> Markup:
    """Counts of a score, the part of them that is in the corpus, and the decile bounds.

    Args:
        selected: values of this score that the configuration selects.
    """
    base = 180
    edges = data.edges.tolist()
    top = max(int(data.pairs.max()), 1)
    frame = Frame(Scale(edges[0], edges[-1], 52, _RIGHT), Scale(0, top * 1.04, base, 30))
    clamped = frame.x.clamped
    drawn = []
    for low, high in selected:
        left, right = clamped(low), clamped(high)
        drawn.append(rectangle(left, 21, max(right, left + 2), base, "chosen"))
    drawn += _bars(frame, edges, data.pairs, "pairs") + _bars(frame, edges, data.corpus, "corpus")
    drawn += [line(clamped(v), clamped(v), 22, base, "bound") for v in data.bounds]
    drawn.append(text(frame.x.start - 7, 18, "decile", anchor="end"))
    for decile, (low, high) in enumerate(pairwise([edges[0], *data.bounds, edges[-1]])):
        left, right = clamped(low), clamped(high)
        drawn.append(rectangle(left, 7, right, 21, "ruler"))
        if right - left >= 11:
            drawn.append(text((left + right) / 2, 18, str(decile), anchor="middle"))
    drawn += frame.axes(score(of).unit, "pairs")
    words = f"Lower bounds of the deciles: {', '.join(f'{value:.3f}' for value in data.bounds)}."
    title = f"Histogram of {readable(of)}"
    return picture(drawn, height=220, name=name, title=title, description=words)


def _bars(frame: Frame, edges: Sequence[float], counts: Array, kind: str) -> list[Markup]:
    path = "".join(
        f"M{frame.x.at(low):.1f} {frame.y.start}V{frame.y.at(rows):.1f}"
        f"H{frame.x.at(high):.1f}V{frame.y.start}z"
        for (low, high), rows in zip(pairwise(edges), counts.tolist(), strict=True)
        if rows
    )
    return [element("path", d=path, class_=kind)] if path else []


def density(data: Density, counts: Array, region: Region, *, of: str, name: str) -> Markup:
    """Counts over two scores as shades, each a multiple of the one before, and the selected region.

    Args:
        counts: int [x, y], of `data.pairs` or `data.corpus`.
        region: intervals of the scores; those of scores other than the two are not drawn.
        of: what is counted.
    """
    frame = Frame(
        Scale(data.x_edges[0], data.x_edges[-1], 52, _RIGHT),
        Scale(data.y_edges[0], data.y_edges[-1], 306, 36),
    )
    steps = levels(int(data.pairs.max()))
    level = np.searchsorted(steps, counts, side="right")
    x, y = [frame.x.at(e) for e in data.x_edges], [frame.y.at(e) for e in data.y_edges]
    drawn = [text(frame.x.start, 19, "pairs per cell, from", class_="plain")]
    for shade, least in enumerate(steps, 1):
        cells = "".join(
            f"M{x[i]:.1f} {y[j]:.1f}H{x[i + 1]:.1f}V{y[j + 1]:.1f}H{x[i]:.1f}z"
            for i, j in np.argwhere(level == shade)
        )
        if cells:
            drawn.append(element("path", d=cells, class_=f"shade shade{shade}"))
        end = _RIGHT - 30 * (len(steps) - shade)
        drawn.append(rectangle(end - 30, 2, end, 11, f"shade shade{shade}"))
        drawn.append(text(end - 15, 22, short_number(least), anchor="middle"))
    if data.x in region or data.y in region:
        everything = [(-np.inf, np.inf)]
        for low, high in region.get(data.x, everything):
            for floor, ceiling in region.get(data.y, everything):
                left, right = frame.x.clamped(low), frame.x.clamped(high)
                top, bottom = frame.y.clamped(ceiling), frame.y.clamped(floor)
                right, bottom = max(right, left + 1), max(bottom, top + 1)
                drawn.append(rectangle(left, top, right, bottom, "region"))
    drawn += frame.axes(*(f"{readable(axis)} ({score(axis).unit})" for axis in (data.x, data.y)))
    title = f"{readable(data.y)} against {readable(data.x)}: {of}"
    words = f"{int(counts.sum()):,} pairs; the fullest cell has {int(counts.max()):,}."
    return picture(drawn, height=344, name=name, title=title, description=words)


def levels(most: int) -> list[int]:
    """Least counts of the shades: from 1 by a constant factor, whole and increasing.

    >>> levels(64)
    [1, 2, 4, 8, 16, 32]
    """
    raw = [max(most, 1) ** (k / _LEVELS) for k in range(_LEVELS)]
    return sorted({max(round(value), 1) for value in raw})


def curve(result: AutoSelectRecord, scorer: str, *, name: str) -> Markup:
    """Agreement with the labelled pairs over the deciles of a scorer: mean and range of the seeds.

    The band is a random sample of the same size. All curves of a selection have the same y axis.
    """
    values = [v for by in result.scores.values() for seeds in by.values() for v in seeds]
    values += result.random
    room = 0.08 * (max(values) - min(values)) or 1.0
    frame = Frame(
        Scale(-0.5, 9.5, 52, _RIGHT), Scale(min(values) - room, max(values) + room, 180, 12)
    )
    x, y = frame.x, frame.y
    drawn: list[Markup] = []
    if scorer == result.chosen.scorer:
        deciles = result.chosen.deciles
        drawn.append(rectangle(x.at(deciles[0] - 0.5), 12, x.at(deciles[-1] + 0.5), 180, "chosen"))
    if result.random:
        top, bottom = y.at(max(result.random)), y.at(min(result.random))
        mean = y.at(fmean(result.random))
        drawn.append(rectangle(x.start, top, x.end, max(bottom, top + 1), "random"))
        drawn.append(line(x.start, x.end, mean, mean, "random"))
    by_decile = sorted(result.scores[scorer].items())
    points = []
    for decile, seeds in by_decile:
        at, mean = x.at(decile), y.at(fmean(seeds))
        points.append(f"{at:.1f},{mean:.1f}")
        drawn.append(line(at, at, y.at(min(seeds)), y.at(max(seeds)), "spread"))
        drawn.append(element("circle", cx=at, cy=mean, r=3, class_="point"))
    drawn.append(element("polyline", points=" ".join(points), class_="curve"))
    drawn += frame.axes(f"decile of {readable(scorer)}", "Pearson × 100")
    means = ", ".join(f"{decile}: {fmean(seeds):.1f}" for decile, seeds in by_decile)
    title = f"Agreement with the labelled pairs over the deciles of {readable(scorer)}"
    return picture(drawn, height=220, name=name, title=title, description=f"Means: {means}.")
