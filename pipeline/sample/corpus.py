"""Draws sentence pairs: distinct, Czech and English, each with the frame and meaning behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from models.errors import UserError
from pipeline.sample.frame import Frame
from pipeline.sample.frames import FRAMES
from pipeline.sample.grammar import PLAIN, Meaning, Wording

WEIGHTS = [frame.weight for frame in FRAMES]

USUAL = 0.5
"""Share of the sentences in the usual wording throughout; the others choose at every turn."""
TWICE = 0.12
"""Share of the Czech sentences that come with a second English wording."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A Czech sentence and an English one of the same meaning."""

    czech: str
    english: str
    frame: Frame
    meaning: Meaning


def draw(random: Random) -> tuple[Frame, dict]:
    """A frame, by weight, and a meaning for it."""
    frame = random.choices(FRAMES, WEIGHTS)[0]
    return frame, frame.draw(random)


def wording(random: Random) -> Wording:
    """The usual wording, or a free one."""
    return PLAIN if random.random() < USUAL else Wording(random)


def pairs(count: int, random: Random) -> Iterator[Pair]:
    """`count` distinct pairs.

    Raises:
        UserError: the frames do not have so many.
    """
    seen: set[tuple[str, str]] = set()
    failed = 0
    while len(seen) < count:
        frame, meaning = draw(random)
        czech = random.choice(frame.in_czech(meaning))
        for _ in range(1 + (random.random() < TWICE)):
            english = frame.in_english(meaning, wording(random))
            failed = failed + 1 if (czech, english) in seen else 0
            if not failed and len(seen) < count:
                seen.add((czech, english))
                yield Pair(czech, english, frame, meaning)
        if failed > 1000:
            raise UserError(f"sample.pairs: the sample has no more than about {len(seen):,} pairs")
