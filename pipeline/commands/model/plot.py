"""`paraloom plot`: sentences along one unit of their vectors, or by two principal components."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from paraloom.models.embeddings.applications.components import distant_rows, principal_components
from paraloom.models.embeddings.applications.embed import line_batches
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, check_writable
from paraloom.pipeline.commands.options import Model
from paraloom.pipeline.report.plots import Scale
from paraloom.pipeline.report.render import render_html

WIDTH = 760
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # as XML 1.0 has it
_SHOWN = 24  # sentences in a plot of a unit
_NAMED = 12  # sentences printed below a plot of components


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
    check_writable(Path(out))
    encoder = load_encoder(model)
    sentences = [line for batch in line_batches(sys.stdin.buffer) for line in batch]
    if len(sentences) < 2:
        raise UserError(f"plot: {len(sentences)} sentences are too few, two are needed")
    vectors = encoder.embed(sentences)
    if unit is None:
        drawn = components_plot(sentences, vectors)
    elif 0 <= unit < encoder.dim:
        drawn = unit_plot(sentences, vectors[:, unit], unit)
    else:
        raise UserError(f"plot: no unit {unit}, the model has units 0 to {encoder.dim - 1}")
    with atomic_file(out) as temporary:
        temporary.write_text(_NOT_XML.sub("\ufffd", drawn), encoding="utf-8")


def unit_plot(sentences: Sequence[str], values: np.ndarray, unit: int) -> str:
    """Sentences at their values of one unit, the lowest at the top."""
    order = np.argsort(values, kind="stable")
    rows = order[np.unique(np.linspace(0, len(order) - 1, _SHOWN).round().astype(int))]
    x = Scale(*_range(values), 20, WIDTH - 20)
    points = [(sentences[row], x.at(float(values[row]))) for row in rows]
    return render_html("unit_plot.svg.j2", width=WIDTH, x=x, points=points, unit=unit)


def components_plot(sentences: Sequence[str], vectors: np.ndarray) -> str:
    """Sentences as points in the plane of the first two components; some are printed below."""
    found = principal_components(vectors)
    across, up = found.points.T
    x, y = Scale(*_range(across), 60, WIDTH - 20), Scale(*_range(up), 380, 12)
    return render_html(
        "components_plot.svg.j2",
        width=WIDTH,
        x=x,
        y=y,
        names=[
            f"component {i} ({share:.0%} of variance)" for i, share in enumerate(found.shares, 1)
        ],
        sentences=sentences,
        points=[(x.at(float(a)), y.at(float(b))) for a, b in found.points],
        rows=distant_rows(found.points, _NAMED).tolist(),
    )


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    more = 0.05 * (high - low) or 1.0
    return low - more, high + more
