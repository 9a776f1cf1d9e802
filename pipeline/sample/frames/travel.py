"""Frames of motion and timetables."""

from __future__ import annotations

from pipeline.sample import lexicon
from pipeline.sample.frame import Frame, Options, Slot
from pipeline.sample.frames.shared import (
    COMMON,
    PAST_PEOPLE,
    PRESENT_PEOPLE,
    fixed,
    optional,
    times,
    verb,
)
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import NP, Phrase

VEHICLES = [
    Phrase.of("autem", "by car"), Phrase.of("vlakem", "by train", "", en_took="the train"),
    Phrase.of("autobusem", "by bus", "", en_took="the bus"),
    Phrase.of("na kole", "by bike/on a bike"),
    Phrase.of("tramvají", "by tram", "", en_took="the tram"),
    Phrase.of("taxíkem", "by taxi/in a taxi", "", en_took="a taxi"),
    Phrase.of("metrem", "by underground/by subway", "", en_took="the underground/the subway"),
]  # fmt: skip

FAR_VEHICLES = [*VEHICLES[:3], Phrase.of("letadlem", "by plane")]

NEAR = lexicon.group(lexicon.places(), "go")

FAR = lexicon.group(lexicon.places(), "far")

GO, RIDE, RETURN, *_ = lexicon.moves()

TAKE = verb("take")


def means(meaning: Meaning) -> Options:
    """By what one goes: only with a verb of riding."""
    if meaning["act"] is not RIDE:
        return [None]
    return [*(FAR_VEHICLES if meaning["to"] in FAR else VEHICLES), None]


def goals(meaning: Meaning) -> Options:
    """Where one walks to, or travels to."""
    return NEAR if meaning["act"] is GO else FAR if meaning["act"] is not RIDE else [*NEAR, *FAR]


def motion(when: Options, who: Options) -> dict[str, Slot]:
    """Slots of a sentence of motion."""
    return {
        "act": fixed([GO, GO, RIDE, RIDE, RIDE], "core"),
        "who": fixed(who),
        "to": Slot(goals),
        "by": Slot(means, "detail"),
        "when": optional(when, 0.8),
    }


WENT = Frame(
    "went", "travel", motion(times("past"), PAST_PEOPLE),
    ("{who} {act.impf.past} {when} {by} {to.to}.", "{!when} {act.impf.past} {who} {by} {to.to}.",
     "{who} {!when} {act.impf.past} {by} {to.to}."),
    (
        "{who} {act.past} {to.to} {by} {when}.",
        "{!when}, {who} {act.past} {to.to} {by}.",
        "{who} {take.past} {!by.took} {to.to} {when}.",
    ),
    COMMON | {"take": TAKE}, 9,
)  # fmt: skip

WILL_GO = Frame(
    "will_go", "travel", motion(times("future"), PRESENT_PEOPLE),
    ("{who} {act.pf.fut} {when} {by} {to.to}.", "{!when} {act.pf.fut} {who} {by} {to.to}.",
     "{who} {!when} {act.pf.fut} {by} {to.to}."),
    (
        "{who} will {act.base} {to.to} {by} {when}.",
        "{!when}, {who} will {act.base} {to.to} {by}.",
        "{who} {is} {act.ing0} {to.to} {by} {when}.",
        "{who} will {take.base} {!by.took} {to.to} {when}.",
    ),
    COMMON | {"take": TAKE}, 7,
)  # fmt: skip

RETURNED = Frame(
    "returned", "travel",
    {"act": fixed([RETURN], "core"), "who": fixed(PAST_PEOPLE), "to": fixed(FAR),
     "when": optional(times("past"), 0.8)},
    ("{when} {who} {act.pf.past} {to.from}.", "{who} {when} {act.pf.past} {to.from}."),
    ("{who} {act.past} {to.from} {when}.", "{!when}, {who} {act.past} {to.from}."),
    COMMON, 4,
)  # fmt: skip

NEVER_BEEN = Frame(
    "never_been", "travel",
    {"who": fixed(PAST_PEOPLE), "to": fixed([p for p in FAR if p.czech[0][1] != "doma"])},
    ("{who} {be.impf.neg.past} nikdy {to}.", "{who} nikdy {be.impf.neg.past} {to}."),
    ("{who} {has} never been {to.to}.",),
    COMMON, 3,
)  # fmt: skip

HOURS = [
    Phrase.of(cs, f"at {en} o'clock/at {en}")
    for cs, en in (
        ("v jednu hodinu", "one"), ("ve dvě hodiny", "two"), ("ve tři hodiny", "three"),
        ("ve čtyři hodiny", "four"), ("v pět hodin", "five"), ("v šest hodin", "six"),
        ("v sedm hodin", "seven"), ("v osm hodin", "eight"), ("v devět hodin", "nine"),
        ("v deset hodin", "ten"), ("v jedenáct hodin", "eleven"),
    )
]  # fmt: skip
HOURS += [
    Phrase.of("v poledne", "at noon/at midday"), Phrase.of("o půlnoci", "at midnight"),
    Phrase.of("v půl osmé", "at half past seven/at seven thirty"),
    Phrase.of("v půl deváté", "at half past eight/at eight thirty"),
]  # fmt: skip

LEAVES = verb("leave/depart", "odjíždět odjížd:í odjížděl", "odjet odjed:e odjel")

ARRIVES = verb("arrive/get in", "přijíždět přijížd:í přijížděl", "přijet přijed:e přijel")

RIDES = {
    "what": fixed([NP(lexicon.noun(n)) for n in ("vlak", "autobus")]),
    "city": fixed([NP(n) for n in lexicon.nouns() if "city" in n.groups]),
    "hour": fixed(HOURS, "detail"),
}

LEAVING = Frame(
    "leaving", "travel", RIDES,
    ("{what.nom} {city.do.gen} {go.impf.pres:what} {hour}.",),
    ("{what.the} to {city} {go.pres:what} {hour}.",),
    COMMON | {"go": LEAVES}, 3,
)  # fmt: skip

ARRIVING = Frame(
    "arriving", "travel", RIDES,
    ("{what.nom} {city.z.gen} {go.pf.past:what} {hour}.",),
    ("{what.the} from {city} {go.past:what} {hour}.",),
    COMMON | {"go": ARRIVES}, 3,
)  # fmt: skip

OPENS = Frame(
    "opens", "shopping",
    {"what": fixed(lexicon.things("opens")),
     "act": fixed([verb("open", "otevírat otevír:á otevíral"),
                   verb("close", "zavírat zavír:á zavíral")], "core"),
     "hour": fixed(HOURS, "detail")},
    ("{what.nom} {act.impf.pres:what} {hour}.",),
    ("{what.the} {act.pres:what} {hour}.",),
    COMMON, 2,
)  # fmt: skip

FRAMES = [WENT, WILL_GO, RETURNED, NEVER_BEEN, LEAVING, ARRIVING, OPENS]
