"""Adds broken lines to Multi30k, and measures which lines `input.where` rejects.

python -m benchmarks.untranslated

The twelve kinds of broken lines are equally frequent. They have wrong languages, sides with
different content, no sentence, or the same text on both sides.
"""

import random
import time
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.measure import DATA, Measured, command_line, read_side
from paraloom.beam_jobs.transforms.conditions import Predicate, reasons

CONDITIONS = (
    "source_language = cs",
    "reference_language = en",
    "identical = no",
    "source_letters >= 0.6",
    "reference_letters >= 0.6",
    "token_ratio in 0.45..1.35",
    "character_ratio in 0.5..1.35",
)
"""The conditions that docs/choosing-pairs.md recommends for Czech and English."""

Sides = Sequence[tuple[str, str, str]]
"""Czech, English and French captions, line by line."""


class Line(NamedTuple):
    """A pair and the kind of its defect. A sound pair has the kind ""."""

    source: str
    reference: str
    kind: str


def read_sides(folder: Path = DATA / "multi30k") -> Sides:
    """Read the Czech, English and French training captions of Multi30k."""
    return list(zip(*(read_side(of, folder) for of in ("cs", "en", "fr")), strict=True))


def add_noise(sides: Sides, *, share: float, seed: int) -> list[Line]:
    """Return the Czech–English pairs, mixed with `share` times as many broken pairs."""
    draw = random.Random(seed)
    lines = [Line(czech, english, "") for czech, english, _ in sides]
    for number in range(round(share * len(sides))):
        kind = list(KINDS)[number % len(KINDS)]
        lines.append(Line(*KINDS[kind](draw, sides), kind))
    draw.shuffle(lines)
    return lines


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


def _merged(draw: random.Random, sides: Sides, side: int) -> tuple[str, str]:
    """Append the sentence of the next line to one side of a pair."""
    at = draw.randrange(len(sides) - 1)
    pair = list(sides[at][:2])
    pair[side] += " " + sides[at + 1][side]
    return pair[0], pair[1]


def _truncated(draw: random.Random, sides: Sides, side: int) -> tuple[str, str]:
    """Keep the first 20% to 50% of the words of one side."""
    pair = list(draw.choice(sides)[:2])
    words = pair[side].split()
    pair[side] = " ".join(words[: max(round(len(words) * draw.uniform(0.2, 0.5)), 1)])
    return pair[0], pair[1]


def _columns(first: int, second: int) -> Callable[[random.Random, Sides], tuple[str, str]]:
    return lambda draw, sides: itemgetter(first, second)(draw.choice(sides))


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
"""The kinds of broken lines, each with the function that makes a pair of this kind."""


def main() -> None:
    """Apply `CONDITIONS` to sound and broken lines, and print the shares of rejected lines."""
    lines = add_noise(read_sides(), share=0.1, seed=1)
    source, reference = (pa.array([line[side] for line in lines]) for side in (0, 1))
    kinds = np.array([line.kind for line in lines])
    conditions = [Predicate.parse(text) for text in CONDITIONS]
    reasons(source[:100], reference[:100], conditions)  # loads the language identifier
    started = time.process_time()
    rejected = reasons(source, reference, conditions) != ""
    seconds = time.process_time() - started
    measured = Measured(f"input.where on {len(lines):,} pairs, {(kinds != '').mean():.0%} broken")
    measured.add("pairs/s on one core", len(lines) / seconds)
    parts = {"broken lines": kinds != "", "sound lines": kinds == ""}
    for name, rows in {**parts, **{kind: kinds == kind for kind in KINDS}}.items():
        measured.add(f"{name}: rejected, %", float(100 * rejected[rows].mean()))
    measured.done("untranslated")


if __name__ == "__main__":
    command_line(main)
