"""Multi30k with foreign and broken lines added: what `input.where` should find.

All kinds of broken lines are equally frequent: wrong languages, sides of different content, lines
without a sentence, and copies.
"""

import gzip
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import DATA
from paraloom.models.errors import UserError

MULTI30K = DATA / "multi30k"


class Line(NamedTuple):
    """A pair, and what is wrong with it: "" if it is sound."""

    source: str
    reference: str
    kind: str


Sides = Sequence[tuple[str, str, str]]
"""Czech, English and French of each line."""


def add_noise(sides: Sides, *, share: float, seed: int) -> list[Line]:
    """The Czech–English pairs, mixed with `share` times as many broken ones."""
    draw = random.Random(seed)
    lines = [Line(czech, english, "") for czech, english, _ in sides]
    for number in range(round(share * len(sides))):
        kind = list(KINDS)[number % len(KINDS)]
        lines.append(Line(*KINDS[kind](draw, sides), kind))
    draw.shuffle(lines)
    return lines


def read_side(language: str, folder: Path = MULTI30K, name: str = "train") -> list[str]:
    """Read one language of Multi30k.

    Raises:
        UserError: the file is missing.
    """
    path = folder / f"{name}.{language}.gz"
    if not path.is_file():
        raise UserError(f"{path}: not there; set PARALOOM_DATA")
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def read_sides(folder: Path = MULTI30K, name: str = "train") -> Sides:
    """Read Czech, English and French of Multi30k."""
    return list(zip(*(read_side(of, folder, name) for of in ("cs", "en", "fr")), strict=True))


def _boilerplate(draw: random.Random) -> str:
    number = draw.randrange
    made = (
        f"http://www.{draw.choice('abcdef')}{number(999)}.cz/{number(9999)}",
        f"{number(24)}:{number(60):02} – {number(99)}.{number(9)} %",
        " | ".join(str(number(1, 40)) for _ in range(draw.randint(3, 12))),
        f"+420 {number(600, 799)} {number(999):03} {number(999):03}",
        f"© {number(1995, 2020)} www.photo{number(99)}.com [{number(9)}/{number(9, 30)}]",
        f"{'-' * draw.randint(3, 30)} {number(99)} {'*' * draw.randint(0, 9)}",
    )
    return draw.choice(made)


def _cut(draw: random.Random, text: str) -> str:
    """The first 20% to 50% of the words."""
    words = text.split()
    return " ".join(words[: max(round(len(words) * draw.uniform(0.2, 0.5)), 1)])


def _merged(draw: random.Random, sides: Sides, side: int) -> tuple[str, str]:
    """A pair in which one side is followed by the sentence of the next line."""
    at = draw.randrange(len(sides) - 1)
    pair = list(sides[at][:2])
    pair[side] += " " + sides[at + 1][side]
    return pair[0], pair[1]


def _truncated(draw: random.Random, sides: Sides, side: int) -> tuple[str, str]:
    pair = list(draw.choice(sides)[:2])
    pair[side] = _cut(draw, pair[side])
    return pair[0], pair[1]


def _columns(first: int, second: int) -> Callable[[random.Random, Sides], tuple[str, str]]:
    def choose(draw: random.Random, sides: Sides) -> tuple[str, str]:
        line = draw.choice(sides)
        return line[first], line[second]

    return choose


KINDS: dict[str, Callable[[random.Random, Sides], tuple[str, str]]] = {
    "languages swapped": _columns(1, 0),
    "French source": _columns(2, 1),
    "French reference": _columns(0, 2),
    "French on both sides": lambda draw, sides: (draw.choice(sides)[2], draw.choice(sides)[2]),
    "source copied": _columns(0, 0),
    "reference copied": _columns(1, 1),
    "truncated source": lambda draw, sides: _truncated(draw, sides, 0),
    "truncated reference": lambda draw, sides: _truncated(draw, sides, 1),
    "merged source": lambda draw, sides: _merged(draw, sides, 0),
    "merged reference": lambda draw, sides: _merged(draw, sides, 1),
    "numbers and addresses": lambda draw, _: (_boilerplate(draw), _boilerplate(draw)),
    "an address for a sentence": lambda draw, sides: (draw.choice(sides)[0], _boilerplate(draw)),
}
"""The kinds of broken lines, and how a pair of each is made."""
