"""`paraloom plot`: sentences along one unit of their vectors, or by two principal components."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from paraloom.models.embeddings.applications.embed import line_batches
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, check_writable
from paraloom.pipeline.commands.options import Model
from paraloom.pipeline.report.plots import padded
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
    rows = evenly_spread(values, _SHOWN)
    x = padded(values, 20, WIDTH - 20)
    points = [(sentences[row], x.at(float(values[row]))) for row in rows]
    return render_html("unit_plot.svg.j2", width=WIDTH, x=x, points=points, unit=unit)


def components_plot(sentences: Sequence[str], vectors: np.ndarray) -> str:
    """Sentences as points in the plane of the first two components; some are printed below."""
    found = principal_components(vectors)
    across, up = found.points.T
    x, y = padded(across, 60, WIDTH - 20), padded(up, 380, 12)
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
        rows=evenly_spread(across, _NAMED),
    )


class Components(NamedTuple):
    """Sentences in the directions of largest variance."""

    points: NDArray[np.float64]  # [n, 2]
    shares: NDArray[np.float64]  # [2]: share of the variance in each direction


def principal_components(vectors: NDArray[np.floating]) -> Components:
    """The first two principal components of n vectors (Mueller & Thyagarajan 2016, 4.3).

    The largest weight of each direction is positive, so that plots are never mirrored.
    """
    from sklearn.decomposition import PCA

    pca = PCA(2, svd_solver="full")
    with np.errstate(invalid="ignore"):  # shares of no variance
        points = pca.fit_transform(np.asarray(vectors, np.float64))
    return Components(points, np.nan_to_num(pca.explained_variance_ratio_))


def evenly_spread(values: NDArray[np.floating], count: int) -> list[int]:
    """At most `count` rows at equal distances in the order of their values, both ends included.

    >>> evenly_spread(np.array([5.0, 1.0, 3.0, 2.0, 4.0]), 3)
    [1, 2, 0]
    """
    order = np.argsort(values, kind="stable")
    places = np.unique(np.linspace(0, len(order) - 1, count).round().astype(int))
    return [int(row) for row in order[places]]
