"""Drawing in SVG: elements as text, linear scales, ticks, the frame of a plot.

Plots are WIDTH units wide and stand in a grid, so that a unit is about a pixel on a laptop and on
a phone alike and 11-unit text stays legible. Colours are classes: the page's style sheet knows
light from dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH = 340


def element(name: str, content: str = "", **attributes: object) -> str:
    """An element; `content` is markup already, attributes are escaped (`class_` is class).

    >>> element("line", x1=0, x2=2.5, class_="axis")
    '<line x1="0" x2="2.5" class="axis"/>'
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{shown}>{content}</{name}>" if content else f"<{name}{shown}/>"


def text(x: float, y: float, words: str, *, anchor: str = "start", **attributes: object) -> str:
    """A line of text whose baseline begins (or ends, or has its middle) at a point."""
    return element("text", escape(words), x=x, y=y, text_anchor=anchor, **attributes)


def picture(
    content: Sequence[str],
    *,
    height: float,
    name: str,
    title: str,
    saying: str,
    width: int = WIDTH,
) -> str:
    """A whole picture.

    Args:
        name: unique in the page.
        title: what it shows; `saying`: what there is to see, for those who cannot.
    """
    head = element("title", escape(title), id=f"{name}-title")
    head += element("desc", escape(saying), id=f"{name}-desc")
    return element(
        "svg",
        head + "".join(content),
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
        """Where a value stands."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def held(self, value: float) -> float:
        """Where a value stands, or the nearer end if it is beyond."""
        return self.at(min(max(value, self.low), self.high))


class Frame(NamedTuple):
    """The two scales of a plot."""

    x: Scale
    y: Scale

    def axes(self, x_title: str, y_title: str) -> list[str]:
        """Both axes with ticks, numbers and titles."""
        x, y = self.x, self.y
        drawn = [
            element("line", x1=x.start, x2=x.end, y1=y.start, y2=y.start, class_="axis"),
            element("line", x1=x.start, x2=x.start, y1=y.start, y2=y.end, class_="axis"),
        ]
        for value in ticks(x.low, x.high):
            at = x.at(value)
            drawn.append(element("line", x1=at, x2=at, y1=y.start, y2=y.start + 4, class_="axis"))
            drawn.append(text(at, y.start + 15, shown(value), anchor="middle"))
        for value in ticks(y.low, y.high):
            at = y.at(value)
            drawn.append(element("line", x1=x.start - 4, x2=x.start, y1=at, y2=at, class_="axis"))
            drawn.append(text(x.start - 7, at + 4, shown(value), anchor="end"))
        drawn.append(text((x.start + x.end) / 2, y.start + 32, x_title, anchor="middle"))
        middle = (y.start + y.end) / 2
        turned = f"rotate(-90 11 {_number(middle)})"
        drawn.append(text(11, middle, y_title, anchor="middle", transform=turned))
        return drawn


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


def shown(value: float) -> str:
    """A number as short as a tick needs it.

    >>> [shown(v) for v in (0.25, -3.0, 1500, 20_000_000)]
    ['0.25', '−3', '1.5k', '20M']
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
