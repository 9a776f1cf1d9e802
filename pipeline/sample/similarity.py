"""Labelled sentence pairs, 0 to 5, whose labels follow from how the pairs are built.

5 is the same meaning in other words. What two sentences do not share takes from it: a circumstance
that one of them leaves out or that differs, a participant that differs, another event. The
greatest difference counts in full, each further one less. Two sentences of one theme that share
nothing else have 1, two of different themes 0.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from random import Random

from pipeline.sample.corpus import draw
from pipeline.sample.frame import Frame, Role
from pipeline.sample.grammar import PLAIN, Meaning, Wording
from pipeline.sample.lexicon import Action

OMITTED = 1.0  # a circumstance that only one of the sentences names
CHANGED: dict[Role, float] = {"detail": 1.4, "argument": 2.0, "core": 2.6}
FURTHER = (1.0, 0.6, 0.4)  # what the greatest difference, the second and the third count
SAME_THEME, UNRELATED = 1.0, 0.0
NO_THEME = {"action", "activity", "feelings", "liking", "quality", "question", "request"}
"""Kinds of frames rather than themes: two such sentences need not be about the same."""

Labelled = tuple[float, str, str]
Step = Callable[[Frame, Meaning, Random], Meaning | None]


def label(frame: Frame, one: Meaning, two: Meaning) -> float:
    """The similarity of two meanings of one frame.

    >>> from pipeline.sample.frames.actions import DONE
    >>> meaning = DONE.draw(Random(1))
    >>> label(DONE, meaning, meaning)
    5.0
    """
    losses = []
    for name, slot in frame.slots.items():
        if one[name] != two[name]:
            omitted = one[name] is None or two[name] is None
            losses.append(OMITTED if omitted else CHANGED[slot.role])
    losses.sort(reverse=True)
    if len(losses) > len(FURTHER):
        return SAME_THEME
    taken = sum(weight * loss for weight, loss in zip(FURTHER, losses, strict=False))
    return round(max(SAME_THEME, 5.0 - taken), 2)


def theme(frame: Frame, meaning: Meaning) -> str:
    """What a sentence is about: the theme of its action where it has one."""
    act = meaning.get("act")
    return act.theme if isinstance(act, Action) and act.theme else frame.theme


def _omit(frame: Frame, meaning: Meaning, random: Random) -> Meaning | None:
    details = [
        name
        for name, slot in frame.slots.items()
        if slot.role == "detail" and meaning[name] is not None and None in slot.options(meaning)
    ]
    return {**meaning, random.choice(details): None} if details else None


def _change(frame: Frame, meaning: Meaning, random: Random) -> Meaning | None:
    name = random.choice([name for name in frame.slots if meaning[name] is not None])
    new = random.choice(frame.slots[name].options(meaning))
    changed = {**meaning, name: new}
    return changed if new not in (None, meaning[name]) and frame.allows(changed) else None


def _related(random: Random, steps: tuple[Step, ...]) -> Labelled | None:
    frame, meaning = draw(random)
    other: Meaning = meaning
    for step in steps:
        changed = step(frame, other, random)
        if changed is None:
            return None
        other = changed
    same = frame.in_english(meaning) == frame.in_english(other)
    if same == bool(steps):  # a change that English does not show is none
        return None
    free = Wording(random)
    return label(frame, meaning, other), frame.in_english(meaning), frame.in_english(other, free)


def _unlike(random: Random, *, same_theme: bool) -> Labelled | None:
    (frame, one), (other_frame, two) = draw(random), draw(random)
    shared = {v for v in one.values() if v is not None} & {v for v in two.values() if v is not None}
    themes = theme(frame, one), theme(other_frame, two)
    if shared or (themes[0] == themes[1]) != same_theme or NO_THEME & {*themes}:
        return None
    value = SAME_THEME if same_theme else UNRELATED
    return value, frame.in_english(one, PLAIN), other_frame.in_english(two, PLAIN)


RECIPES: tuple[tuple[int, Callable[[Random], Labelled | None]], ...] = (
    (45, lambda random: _related(random, ())),
    (40, lambda random: _related(random, (_omit,))),
    (15, lambda random: _related(random, (_omit, _omit))),
    (55, lambda random: _related(random, (_change,))),
    (25, lambda random: _related(random, (_omit, _change))),
    (25, lambda random: _related(random, (_change, _change))),
    (15, lambda random: _related(random, (_change, _change, _change))),
    (25, lambda random: _unlike(random, same_theme=True)),
    (35, lambda random: _unlike(random, same_theme=False)),
)
"""How many pairs of a data set are built in which way."""


def labelled_pairs(random: Random, known: Container[str]) -> list[Labelled]:
    """One data set; no sentence is `known`, none comes twice."""
    found: list[Labelled] = []
    seen: set[str] = set()
    for count, recipe in RECIPES:
        wanted = len(found) + count
        while len(found) < wanted:
            pair = recipe(random)
            if pair is None or pair[1] == pair[2] or {pair[1], pair[2]} & seen:
                continue
            if pair[1] in known or pair[2] in known:
                continue
            seen |= {pair[1], pair[2]}
            found.append(pair)
    random.shuffle(found)
    return found
