"""Sentence frames: slots, and templates in both languages.

The first English template is the usual wording of the first Czech one, and so on: `english` holds,
for every Czech template, the wordings from the usual to the less usual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from pipeline.sample.grammar import (
    PLAIN,
    Meaning,
    Unusable,
    Wording,
    render_czech,
    render_english,
)
from pipeline.sample.lexicon import Filler

Role = Literal["core", "argument", "detail"]
Options = Sequence[Filler | None]


@dataclass(frozen=True, slots=True)
class Slot:
    """What may fill a slot, given the slots before it; a repeated option is drawn more often.

    `role` says what a change means: of the event (core), of a participant (argument), of a
    circumstance that may be left out (detail).
    """

    options: Callable[[Meaning], Options]
    role: Role = "argument"


@dataclass(frozen=True)
class Frame:
    """A kind of sentence: its theme, slots, Czech orders and, for all of them, English wordings."""

    name: str
    theme: str
    slots: dict[str, Slot]
    czech: tuple[str, ...]
    english: tuple[str, ...]
    verbs: Mapping[str, Filler]
    weight: int = 10

    def draw(self, random: Random) -> dict[str, Filler | None]:
        """A meaning: every slot filled, in order."""
        meaning: dict[str, Filler | None] = {}
        for name, slot in self.slots.items():
            meaning[name] = random.choice(slot.options(meaning))
        return meaning

    def allows(self, meaning: Meaning) -> bool:
        """Whether every slot's filler is among its options."""
        return all(meaning[name] in slot.options(meaning) for name, slot in self.slots.items())

    def in_czech(self, meaning: Meaning) -> list[str]:
        """The Czech sentences with this meaning, one per word order that it has."""
        full = {**self.verbs, **meaning}
        found: dict[str, None] = {}
        for template in self.czech:
            try:
                found[render_czech(template, full)] = None
            except Unusable:
                continue
        return list(found)

    def in_english(self, meaning: Meaning, wording: Wording = PLAIN) -> str:
        """One English sentence with this meaning."""
        full = {**self.verbs, **meaning}
        templates = list(self.english)
        while templates:
            template = wording.choose(templates)
            try:
                return render_english(template, full, wording)
            except Unusable:
                templates.remove(template)
        raise Unusable(f"{self.name}: no English for {meaning}")
