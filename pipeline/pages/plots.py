"""Scales, ticks and shades of the pictures, which are templates.

A picture is WIDTH units wide, unless its template has another width. Plots are laid out in a grid,
so that one unit is about one pixel on a laptop and on a phone, and text of 11 units is legible.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from paraloom.pipeline.pages.report_data import Array, Density

WIDTH = 340
_SHADES = 6  # of the density


class Scale(NamedTuple):
    """A linear map from values to units of the picture."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The position of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def clamped(self, value: float) -> float:
        """The position of a value, or of the nearer end if the value is beyond it."""
        return self.at(min(max(value, self.low), self.high))


def padded(values: Iterable[float], start: float, end: float) -> Scale:
    """An axis that holds all values, with some room at both ends."""
    found = [*map(float, values)]
    room = 0.08 * (max(found) - min(found)) or 0.05
    return Scale(min(found) - room, max(found) + room, start, end)


def shades(data: Density, counts: Array) -> list[tuple[int, list[list[int]]]]:
    """The least count of each shade of a density, and the cells [x, y] with this shade.

    The least count of a shade is a constant multiple of the lighter shade's.
    """
    most = max(int(data.pairs.max()), 1)
    steps = np.unique(np.geomspace(1, most, _SHADES, endpoint=False).round().astype(int))
    level = np.searchsorted(steps, counts, side="right")
    return [(int(least), np.argwhere(level == k).tolist()) for k, least in enumerate(steps, 1)]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """At most `most` + 1 round numbers between two values.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    low, high = sorted((low, high))
    if not high > low:
        return [low]
    raw = (high - low) / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def short_number(value: float) -> str:
    """A number in a short form, for a tick.

    >>> [short_number(v) for v in (0.25, -3.0, 1500, 20_000_000)]
    ['0.25', '−3', '1.5k', '20M']
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")
