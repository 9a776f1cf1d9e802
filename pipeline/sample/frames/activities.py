"""Frames about activities: what people and animals do somewhere, alone or together."""

from __future__ import annotations

from pipeline.sample import lexicon
from pipeline.sample.frame import Frame, Options, Slot
from pipeline.sample.frames.shared import (
    COMMON,
    PAST_PEOPLE,
    PRESENT_PEOPLE,
    QUALITY,
    THIRD,
    action,
    fixed,
    optional,
    places,
    places_always,
    times,
    verb,
)
from pipeline.sample.lexicon import NP, Pronoun


def sociable(people: Options) -> Slot:
    """Who does an activity; talking takes several."""
    several = [who for who in people if isinstance(who, NP | Pronoun) and who.agreement.plural]
    return Slot(lambda m: several if action(m).key == "chat" else people)


ACTIVITY_NOW = Frame(
    "activity_now", "activity",
    {
        "act": fixed(lexicon.activities(), "core"),
        "who": sociable(PRESENT_PEOPLE),
        "where": Slot(places_always),
        "when": optional(times("now"), 0.3),
    },
    ("{who} {when} {act.impf.pres} {where}.",),
    ("{who} {is} {act.ing} {where} {when}.", "{!when}, {who} {is} {act.ing} {where}."),
    COMMON, 9,
)  # fmt: skip

ACTIVITY_PAST = Frame(
    "activity_past", "activity",
    {
        "act": fixed([a for a in lexicon.activities() if a.key not in {"lunch", "dinner"}], "core"),
        "who": sociable(PAST_PEOPLE),
        "where": Slot(places_always),
        "span": fixed(times("span"), "detail"),
    },
    ("{who} {span} {act.impf.past} {where}.", "{span} {who} {act.impf.past} {where}."),
    (
        "{who} {act.past} {where} {span}.",
        "{who} {was} {act.ing} {where} {span}.",
        "{who} spent {span.time} {act.ing} {where}.",
    ),
    COMMON, 12,
)  # fmt: skip

SPORT = [a for a in lexicon.activities() if a.key not in {"sleep", "work", "study", "rest", "wait"}]

TOGETHER = Frame(
    "together", "activity",
    {
        "act": fixed(SPORT, "core"),
        "who": fixed(PAST_PEOPLE),
        "with": Slot(lambda m: [np for np in THIRD if np != m["who"]]),
        "where": Slot(places, "detail"),
        "when": optional(times("past"), 0.6),
    },
    (
        "{when} {who} {act.impf.past} {with.s.ins} {where}.",
        "{who} {when} {act.impf.past} {with.s.ins} {where}.",
    ),
    (
        "{who} {act.past} with {with} {where} {when}.",
        "{!when}, {who} {act.past} with {with} {where}.",
        "{who} {was} {act.ing} with {with} {where} {when}.",
    ),
    COMMON, 8,
)  # fmt: skip

GLADLY = Frame(
    "gladly", "liking",
    {
        "act": fixed([a for a in lexicon.activities() if a.key not in {"work", "study", "wait"}],
                     "core"),
        "who": sociable(PRESENT_PEOPLE),
        "where": Slot(places, "detail"),
        "glad": fixed([lexicon.Adjective("rád", ("",))]),
    },
    ("{who} {glad.short:who} {act.impf.pres} {where}.",),
    (
        "{who} {like.pres} to {act.base} {where}.",
        "{who} {like.pres} {act.ing} {where}.",
        "{who} {enjoy.pres} {act.ing} {where}.",
    ),
    COMMON | {"like": verb("like"), "enjoy": verb("enjoy")}, 6,
)  # fmt: skip

POSES = [
    verb("sleep", "spát sp:í spal"), verb("lie", "ležet lež:í ležel"),
    verb("sit", "sedět sed:í seděl"), verb("play", "hrát hraj:j hrál", "", "si"),
]  # fmt: skip

PETS = lexicon.things("pet")

ANIMAL = {
    "act": fixed(POSES, "core"),
    "who": fixed(PETS),
    "quality": Slot(lambda m: QUALITY.options({"what": m["who"]}), "detail"),
    "where": fixed(lexicon.group(lexicon.places(), "pet_spot")),
}

ANIMAL_NOW = Frame(
    "animal_now", "animals", ANIMAL,
    ("{who.nom+quality} {act.impf.pres} {where}.",),
    ("{who.the+quality} {is} {act.ing} {where}.",),
    COMMON, 5,
)  # fmt: skip

ANIMAL_PAST = Frame(
    "animal_past", "animals", ANIMAL | {"when": optional(times("span"), 0.5)},
    ("{when} {who.nom+quality} {act.impf.past} {where}.",
     "{who.nom+quality} {when} {act.impf.past} {where}."),
    ("{who.the+quality} {was} {act.ing} {where} {when}.",
     "{who.the+quality} {act.past} {where} {when}."),
    COMMON, 4,
)  # fmt: skip

FRAMES = [ACTIVITY_NOW, ACTIVITY_PAST, TOGETHER, GLADLY, ANIMAL_NOW, ANIMAL_PAST]
