"""Numbers behind the pictures: scales, ticks, shades; the pictures themselves are templates.

Pictures are WIDTH units wide, unless they say otherwise. Plots are laid out in a grid, so that one
unit is about one pixel on a laptop and on a phone, and text of 11 units stays legible.
"""

import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paraloom.pipeline.records import AutoSelectRecord, PairsRecord
from paraloom.pipeline.report.describe import percent
from paraloom.pipeline.report.report_data import Array, Density

WIDTH = 340
_LEVELS = 6  # shades of the density
_LETTER = 7.2  # width of a letter of a wide typeface


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


def agreement_scale(result: AutoSelectRecord) -> Scale:
    """The y axis of the curves of an automatic selection: all scores, and some room."""
    values = [v for by in result.scores.values() for seeds in by.values() for v in seeds]
    values += result.random
    room = 0.08 * (max(values) - min(values)) or 1.0
    return Scale(min(values) - room, max(values) + room, 180, 12)


def lost_lines(record: PairsRecord, width: float) -> list[str]:
    """The rows that a stage rejected, by reason, in lines of at most `width` units."""
    lines: list[str] = []
    for reason, rows in record.rejected.items():
        words = f"− {rows:,} ({percent(rows, record.rows_in)}) {reason}"
        lines += textwrap.wrap(words, int(width / _LETTER))
    return lines


def shades(data: Density, counts: Array) -> list[tuple[int, list[list[int]]]]:
    """The least count of each shade of a density, and the cells [x, y] of this shade."""
    steps = levels(int(data.pairs.max()))
    level = np.searchsorted(steps, counts, side="right")
    return [(least, np.argwhere(level == k).tolist()) for k, least in enumerate(steps, 1)]


def levels(most: int) -> list[int]:
    """Least counts of the shades: from 1 by a constant factor, whole and increasing.

    >>> levels(64)
    [1, 2, 4, 8, 16, 32]
    """
    raw = [max(most, 1) ** (k / _LEVELS) for k in range(_LEVELS)]
    return sorted({max(round(value), 1) for value in raw})


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


def powers(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, with their halves if there are few.

    >>> powers(300, 20_000), powers(2, 200_000)
    ([500.0, 1000.0, 5000.0, 10000.0], [10.0, 100.0, 1000.0, 10000.0, 100000.0])
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tens = [10.0**exponent for exponent in exponents]
    found = [value for value in tens if low <= value <= high]
    if len(found) > 2:
        return found
    return [value for ten in tens for value in (ten, 5 * ten) if low <= value <= high]


class Box(NamedTuple):
    """A part of the picture."""

    left: float
    top: float
    right: float
    bottom: float

    def contains(self, other: "Box") -> bool:
        """Whether all of another is in this one."""
        return (self.left <= other.left and other.right <= self.right) and (
            self.top <= other.top and other.bottom <= self.bottom
        )

    def meets(self, other: "Box") -> bool:
        """Whether the two share some space."""
        return (self.left < other.right and other.left < self.right) and (
            self.top < other.bottom and other.top < self.bottom
        )


class Label(NamedTuple):
    """A text beside a point; its baseline has its start, middle or end at (x, y)."""

    x: float
    y: float
    anchor: str
    words: str
    is_far: bool = False  # so that it needs a line to its point

    def box(self) -> Box:
        """Its place, in letters of a wide typeface."""
        width = len(self.words) * _LETTER
        left = self.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * width
        return Box(left, self.y - 11, left + width, self.y + 4)


def labels(points: Sequence[tuple[float, float, str]], within: Box) -> list[Label]:
    """Texts beside their points (x, y, text), where they hide neither points nor one another."""
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for x, y, _ in points]
    found = []
    for x, y, words in points:
        tried = [Label(x + 8, y + 4, "start", words), Label(x - 8, y + 4, "end", words)]
        tried += [Label(x, y - 10, "middle", words), Label(x, y + 18, "middle", words)]
        for far in range(8, int(within.bottom - within.top), 8):
            for down in (far, -far):
                tried.append(Label(x + 8, y + 4 + down, "start", words, far > 16))
                tried.append(Label(x - 8, y + 4 + down, "end", words, far > 16))
        label = next((each for each in tried if _is_free(each.box(), within, taken)), tried[0])
        taken.append(label.box())
        found.append(label)
    return found


def _is_free(box: Box, within: Box, taken: Sequence[Box]) -> bool:
    return within.contains(box) and not any(map(box.meets, taken))


def short_number(value: float) -> str:
    """A number as short as a tick needs it.

    >>> [short_number(v) for v in (0.25, -3.0, 1500, 20_000_000)]
    ['0.25', '−3', '1.5k', '20M']
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def coordinate(value: float) -> str:
    """A number of an SVG element, with at most two decimal places."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
