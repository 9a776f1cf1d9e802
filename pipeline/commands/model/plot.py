"""`paraloom plot`: sentences along one unit of their vectors, or by two principal components."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from markupsafe import Markup

from models.embeddings.applications.components import distant_rows, principal_components
from models.embeddings.applications.embed import line_batches
from models.embeddings.model import SentenceEncoder, load_encoder
from models.errors import UserError
from models.files import atomic_file
from pipeline.commands.options import Model
from pipeline.report.svg import Frame, Scale, element, horizontal_axis, picture, text

WIDTH = 760
_SHOWN = 24  # sentences in a plot of a unit
_NAMED = 12  # sentences printed below a plot of components
_LINE = 17
_CHARACTER = 6.2  # upper bound of a character's width
_STYLE = """
svg{background:#fff}text{font:11px sans-serif;fill:#222}.axis{stroke:#888}
.point{fill:#2a6fb0;fill-opacity:.55}.named{fill:#c23b22}
"""


def command(
    model: Model,
    out: Annotated[str, typer.Option(metavar="FILE", help="The SVG file to write.")],
    unit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of a unit of the vectors, from 0. Default: two principal components.",
        ),
    ] = None,
) -> None:
    """Read one sentence a line on standard input, draw the sentences as an SVG file."""
    lines = [line for batch in line_batches(sys.stdin.buffer) for line in batch]
    plot(load_encoder(model), lines, out, unit=unit)


def plot(
    model: SentenceEncoder, sentences: Sequence[str], out: Path | str, *, unit: int | None = None
) -> None:
    """Draw sentences as an SVG file: along one unit of their vectors, or by principal components.

    Args:
        unit: number of the unit, from 0; None draws the first two components.

    Raises:
        UserError: too few sentences, or no such unit.
    """
    if len(sentences) < 2:
        raise UserError(f"plot: {len(sentences)} sentences are too few, two are needed")
    vectors = model.embed(sentences)
    if unit is None:
        drawn = components_plot(sentences, vectors)
    elif 0 <= unit < model.dim:
        drawn = unit_plot(sentences, vectors[:, unit], unit)
    else:
        raise UserError(f"plot: no unit {unit}, the model has units 0 to {model.dim - 1}")
    with atomic_file(out) as temporary:
        temporary.write_text(drawn, encoding="utf-8")


def unit_plot(sentences: Sequence[str], values: np.ndarray, unit: int) -> str:
    """Sentences at their values of one unit, the lowest at the top."""
    order = np.argsort(values, kind="stable")
    rows = order[np.unique(np.linspace(0, len(order) - 1, _SHOWN).round().astype(int))]
    bottom = 20 + _LINE * len(rows)
    scale = Scale(*_range(values), 20, WIDTH - 20)
    drawn = horizontal_axis(scale, bottom, f"unit {unit}")
    for i, row in enumerate(rows):
        x, y = scale.at(float(values[row])), 20 + _LINE * i
        drawn.append(element("circle", cx=x, cy=y, r=4, class_="named"))
        left = x < WIDTH / 2
        start = x + 9 if left else x - 9
        fits = int((WIDTH - start if left else start) / _CHARACTER)
        sentence = _shortened(sentences[row], fits)
        drawn.append(text(start, y + 4, sentence, anchor="start" if left else "end"))
    lowest, highest = (_shortened(sentences[row]) for row in (rows[0], rows[-1]))
    description = f"From {lowest!r} to {highest!r}."
    return _file(drawn, bottom + 40, f"Sentences along unit {unit}", description)


def components_plot(sentences: Sequence[str], vectors: np.ndarray) -> str:
    """Sentences as points in the plane of the first two components; some are printed below."""
    found = principal_components(vectors)
    rows = distant_rows(found.points, _NAMED)
    bottom = 420
    across, up = found.points.T
    frame = Frame(Scale(*_range(across), 60, WIDTH - 20), Scale(*_range(up), bottom - 40, 12))
    names = [f"component {i} ({share:.0%} of variance)" for i, share in enumerate(found.shares, 1)]
    drawn = frame.axes(names[0], names[1])
    points = [(frame.x.at(float(x)), frame.y.at(float(y))) for x, y in found.points]
    drawn += [element("circle", cx=x, cy=y, r=2.5, class_="point") for x, y in points]
    for number, row in enumerate(rows, 1):
        x, y = points[row]
        drawn.append(element("circle", cx=x, cy=y, r=4, class_="named"))
        drawn.append(text(x + 6, y - 4, str(number)))
        drawn.append(text(20, bottom + _LINE * number, f"{number}  {_shortened(sentences[row])}"))
    description = f"{len(sentences)} sentences; {len(rows)} that are far apart are printed below."
    height = bottom + _LINE * (len(rows) + 1)
    return _file(drawn, height, "Sentences by principal components", description)


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    more = 0.05 * (high - low) or 1.0
    return low - more, high + more


def _shortened(sentence: str, longest: int = int(WIDTH / _CHARACTER)) -> str:
    return sentence if len(sentence) <= longest else f"{sentence[: longest - 1]}…"


def _file(drawn: list[Markup], height: float, title: str, description: str) -> str:
    content = [element("style", _STYLE), *drawn]
    svg = picture(
        content, height=height, name="plot", title=title, description=description, width=WIDTH
    )
    return str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"
