"""SVG drawing: elements as markup, linear scales, ticks, the axes of a plot.

Plots are WIDTH units wide and are laid out in a grid, so that one unit is about one pixel on a
laptop and on a phone, and text of 11 units stays legible. Colours are CSS classes: the style sheet
of the page has a light and a dark variant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup, escape

WIDTH = 340


def element(name: str, content: str = "", **attributes: object) -> Markup:
    """An element; content and attributes are escaped unless they are Markup (`class_` is class).

    >>> print(element("line", x1=0, x2=2.5, class_="axis"))
    <line x1="0" x2="2.5" class="axis"/>
    """
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
    )
    end = f">{escape(content)}</{name}>" if content else "/>"
    return Markup(f"<{name}{listed}{end}")  # every piece is escaped


def text(x: float, y: float, words: str, *, anchor: str = "start", **attributes: object) -> Markup:
    """A line of text; its baseline has its start, middle or end at the point."""
    return element("text", words, x=x, y=y, text_anchor=anchor, **attributes)


def picture(
    content: Iterable[Markup],
    *,
    height: float,
    name: str,
    title: str,
    description: str,
    width: int = WIDTH,
) -> Markup:
    """A whole picture.

    Args:
        name: unique in the page; prefix of ids.
        title: what the picture shows.
        description: the same in words, for readers who cannot see it.
    """
    head = element("title", title, id=f"{name}-title")
    head += element("desc", description, id=f"{name}-desc")
    return element(
        "svg",
        head + Markup("").join(content),
        viewBox=f"0 0 {width} {_number(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


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


class Frame(NamedTuple):
    """The two scales of a plot."""

    x: Scale
    y: Scale

    def axes(self, x_title: str, y_title: str) -> list[Markup]:
        """Both axes with ticks, numbers and titles."""
        x, y = self.x, self.y
        drawn = horizontal_axis(x, y.start, x_title)
        drawn.append(line(x.start, x.start, y.start, y.end, "axis"))
        for value in ticks(y.low, y.high):
            at = y.at(value)
            drawn.append(line(x.start - 4, x.start, at, at, "axis"))
            drawn.append(text(x.start - 7, at + 4, short_number(value), anchor="end"))
        middle = (y.start + y.end) / 2
        rotated = f"rotate(-90 11 {_number(middle)})"
        drawn.append(text(11, middle, y_title, anchor="middle", transform=rotated))
        return drawn


def horizontal_axis(x: Scale, y: float, title: str) -> list[Markup]:
    """A horizontal axis at height `y`, with ticks, numbers and a title."""
    drawn = [line(x.start, x.end, y, y, "axis")]
    for value in ticks(x.low, x.high):
        at = x.at(value)
        drawn.append(line(at, at, y, y + 4, "axis"))
        drawn.append(text(at, y + 15, short_number(value), anchor="middle"))
    return [*drawn, text((x.start + x.end) / 2, y + 32, title, anchor="middle")]


def line(x1: float, x2: float, y1: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=class_)


def rectangle(left: float, top: float, right: float, bottom: float, class_: str) -> Markup:
    """A rectangle by its four sides."""
    width, height = right - left, bottom - top
    return element("rect", x=left, y=top, width=width, height=height, class_=class_)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """At most `most` + 1 round numbers between two values.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def short_number(value: float) -> str:
    """A number as short as a tick needs it.

    >>> [short_number(v) for v in (0.25, -3.0, 1500, 20_000_000)]
    ['0.25', '−3', '1.5k', '20M']
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
