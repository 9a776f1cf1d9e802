"""Frames about what people do: actions on things, activities, motion, giving, saying."""

from __future__ import annotations

from functools import cache

from pipeline.sample import lexicon
from pipeline.sample.czech import Verb
from pipeline.sample.frames import Frame, Options, Role, Slot
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import HE, I_MAN, I_WOMAN, NP, SHE, WE, Action, Phrase


def verb(
    english: str, imperfective: str = "", perfective: str = "", reflexive: str = "", **more: str
) -> Action:
    """An action of a frame itself, outside the tables."""
    return Action(
        key=english,
        imperfective=Verb.parse(imperfective) if imperfective else None,
        perfective=Verb.parse(perfective) if perfective else None,
        reflexive=reflexive,
        english=tuple(english.split("/")),
        article=more.get("article", "the"),
        theme=more.get("theme", ""),
        objects=frozenset(more.get("objects", "").split()),
    )


BE = verb("be", "být jsem,jsi,je,jsme,jste,jsou byl", "být bud:e byl")
HAVE = verb("have", "mít m:á měl")
COMMON = {"be": BE, "have": HAVE}

PAST_PEOPLE = lexicon.people(I_MAN, I_WOMAN, WE, HE, SHE)
PRESENT_PEOPLE = lexicon.people(I_MAN, WE)
THIRD = lexicon.people()


def fixed(options: Options, role: Role = "argument") -> Slot:
    """A slot whose options do not depend on the others."""
    return Slot(lambda _: options, role)


def optional(options: Options, share: float, role: Role = "detail") -> Slot:
    """A slot that is filled in a share of the sentences."""
    return fixed(_padded(tuple(options), share), role)


@cache
def _padded(options: tuple, share: float) -> Options:
    return [*options, *[None] * round(len(options) * (1 / share - 1))]


def times(*groups: str) -> list[Phrase]:
    """Adverbials of time."""
    return lexicon.group(lexicon.times(), *groups)


def action(meaning: Meaning, name: str = "act") -> Action:
    """The action that fills a slot."""
    filler = meaning[name]
    assert isinstance(filler, Action)
    return filler


def objects(meaning: Meaning) -> Options:
    """What the action can be done to."""
    return lexicon.things(*sorted(action(meaning).objects))


def qualities(meaning: Meaning) -> Options:
    """Adjectives for `what`, or none (half of the time)."""
    what = meaning["what"]
    assert isinstance(what, NP)
    return _qualities(what)


@cache
def _qualities(what: NP) -> Options:
    fitting = [a for a in lexicon.adjectives() if a.describes(what.noun)]
    return [*fitting, *[None] * max(1, len(fitting))]


def places(meaning: Meaning) -> Options:
    """Where the action happens; left out half of the time."""
    found = lexicon.group(lexicon.places(), *action(meaning).places)
    return [*found, *[None] * max(1, len(found))]


def places_always(meaning: Meaning) -> Options:
    """Where the activity happens."""
    return lexicon.group(lexicon.places(), *action(meaning).places)


PERFECTIVE = [act for act in lexicon.actions() if act.perfective]
DELIBERATE = [act for act in PERFECTIVE if act.key not in {"lose", "lose_game", "find"}]
ACTS = PERFECTIVE
IMPERFECTIVE = [act for act in lexicon.actions() if act.imperfective]
ONGOING = [act for act in IMPERFECTIVE if act.key not in {"lose", "win", "lose_game", "open",
                                                         "close", "sign", "order", "borrow"}]  # fmt: skip
HABITS = [act for act in IMPERFECTIVE if act.key in {
    "repair", "wash", "launder", "clean", "cook", "bake", "eat", "drink", "prepare", "write",
    "read", "watch", "water", "feed", "sweep", "mow", "draw", "send", "check", "photograph",
}]  # fmt: skip
WHAT = Slot(objects)
QUALITY = Slot(qualities, "detail")
WHERE = Slot(places, "detail")


def transitive(acts: Options, who: Options, when: Slot) -> dict[str, Slot]:
    """Slots of a sentence with an object."""
    return {
        "act": fixed(acts, "core"),
        "who": fixed(who),
        "what": WHAT,
        "quality": QUALITY,
        "where": WHERE,
        "when": when,
    }


DONE = Frame(
    "done", "action",
    transitive(PERFECTIVE, PAST_PEOPLE, optional(times("past"), 0.7)),
    (
        "{when} {who} {act.pf.past} {what.acc+quality} {where}.",
        "{who} {when} {act.pf.past} {what.acc+quality} {where}.",
        "{!when} {act.pf.past} {who} {what.acc+quality} {where}.",
    ),
    (
        "{who} {act.past} {what.det+quality:act} {where} {when}.",
        "{!when}, {who} {act.past} {what.det+quality:act} {where}.",
        "{what.the+quality} {was:what} {act.pp0} by {who.np} {where} {when}.",
        "{who} {has} {act.pp} {what.det+quality:act} {where} {-when}.",
    ),
    COMMON, 22,
)  # fmt: skip

NOT_DONE = Frame(
    "not_done", "action",
    transitive(PERFECTIVE, PAST_PEOPLE, optional(times("past"), 0.6)) | {"where": fixed([None])},
    (
        "{when} {who} {act.pf.neg.past} {what.acc+quality}.",
        "{who} {when} {act.pf.neg.past} {what.acc+quality}.",
    ),
    (
        "{who} {didnt} {act.base} {what.the+quality} {when}.",
        "{!when}, {who} {didnt} {act.base} {what.the+quality}.",
    ),
    COMMON, 7,
)  # fmt: skip

NOT_YET = Frame(
    "not_yet", "action",
    transitive(PERFECTIVE, PAST_PEOPLE, fixed([None])) | {"where": fixed([None])},
    ("{who} ještě {act.pf.neg.past} {what.acc+quality}.",),
    (
        "{who} {hasnt} {act.pp} {what.the+quality} yet.",
        "{who} still {hasnt} {act.pp} {what.the+quality}.",
    ),
    COMMON, 5,
)  # fmt: skip

ONGOING_NOW = Frame(
    "ongoing", "action",
    transitive(ONGOING, PRESENT_PEOPLE, optional(times("now"), 0.5)),
    ("{who} {when} {act.impf.pres} {what.acc+quality} {where}.",),
    (
        "{who} {is} {act.ing} {what.det+quality:act} {where} {when}.",
        "{!when}, {who} {is} {act.ing} {what.det+quality:act} {where}.",
    ),
    COMMON, 10,
)  # fmt: skip

HABIT = Frame(
    "habit", "action",
    transitive(HABITS, PRESENT_PEOPLE, fixed(times("habit"), "detail")) | {"quality": fixed([None])},
    (
        "{who} {when} {act.impf.pres} {what.acc} {where}.",
        "{when} {who} {act.impf.pres} {what.acc} {where}.",
    ),
    (
        "{who} {act.pres} {what.det0:act} {where} {when}.",
        "{when}, {who} {act.pres} {what.det0:act} {where}.",
    ),
    COMMON, 7,
)  # fmt: skip

OFTEN = Frame(
    "often", "action",
    transitive(HABITS, PRESENT_PEOPLE, fixed(times("mid"), "detail")) | {"quality": fixed([None])},
    ("{who} {when} {act.impf.pres} {what.acc} {where}.",),
    ("{who} {when} {act.pres} {what.det0:act} {where}.",),
    COMMON, 5,
)  # fmt: skip

NEVER = Frame(
    "never", "action",
    transitive(HABITS, PRESENT_PEOPLE, fixed([None])) | {"quality": fixed([None])},
    ("{who} nikdy {act.impf.neg.pres} {what.acc} {where}.",),
    (
        "{who} never {act.pres} {what.det0:act} {where}.",
        "{who} {dont} ever {act.base} {what.det0:act} {where}.",
    ),
    COMMON, 4,
)  # fmt: skip

PLAN = Frame(
    "plan", "action",
    transitive(DELIBERATE, PRESENT_PEOPLE, optional(times("future"), 0.8)),
    (
        "{when} {who} {act.pf.fut} {what.acc+quality} {where}.",
        "{who} {when} {act.pf.fut} {what.acc+quality} {where}.",
        "{!when} {act.pf.fut} {who} {what.acc+quality} {where}.",
    ),
    (
        "{who} will {act.base} {what.det+quality:act} {where} {when}.",
        "{who} {is} going to {act.base} {what.det+quality:act} {where} {when}.",
        "{!when}, {who} will {act.base} {what.det+quality:act} {where}.",
    ),
    COMMON, 14,
)  # fmt: skip

MODALS = [
    verb("have to/need to/must", "muset mus:í musel"),
    verb("want to/would like to", "chtít chci,chceš,chce,chceme,chcete,chtějí chtěl"),
    verb("can/be able to", "moct můž:e mohl"),
    verb("plan to/intend to", "hodlat hodl:á hodlal"),
    verb("forget to", "zapomínat zapomín:á zapomínal", "zapomenout zapomen:e zapomněl"),
]
WANTING = [
    verb("have to/need to", "muset mus:í musel"),
    verb("want to", "chtít chci,chceš,chce,chceme,chcete,chtějí chtěl"),
    verb("forget to", "", "zapomenout zapomen:e zapomněl"),
    verb("manage to", "", "stihnout stihn:e stihl"),
    verb("decide to", "", "rozhodnout rozhodn:e rozhodl", "se"),
    verb("try to", "", "zkusit zkus:í zkusil"),
    verb("promise to", "", "slíbit slíb:í slíbil"),
]
"""Verbs that take an infinitive."""

MODAL = Frame(
    "modal", "action",
    {"modal": fixed(MODALS[:4], "core")}
    | transitive(DELIBERATE, PRESENT_PEOPLE, optional(times("future"), 0.4))
    | {"where": fixed([None])},
    ("{who} {modal.impf.pres} {when} {act.pf.inf} {what.acc+quality}.",
     "{!when} {modal.impf.pres} {who} {act.pf.inf} {what.acc+quality}."),
    (
        "{who} {modal.pres} {act.base} {what.det+quality:act} {when}.",
        "{!when}, {who} {modal.pres} {act.base} {what.det+quality:act}.",
    ),
    COMMON, 10,
)  # fmt: skip

SHOULD = Frame(
    "should", "action",
    transitive(DELIBERATE, PRESENT_PEOPLE, optional(times("future"), 0.4))
    | {"where": fixed([None])},
    ("{who} {have.impf.cond} {when} {act.pf.inf} {what.acc+quality}.",),
    (
        "{who} should {act.base} {what.det+quality:act} {when}.",
        "{who} ought to {act.base} {what.det+quality:act} {when}.",
    ),
    COMMON, 5,
)  # fmt: skip

HAD_TO = Frame(
    "had_to", "action",
    {"modal": fixed(WANTING[:2], "core")}
    | transitive(DELIBERATE, PAST_PEOPLE, optional(times("past"), 0.5))
    | {"where": fixed([None])},
    ("{!when} {modal.impf.past} {who} {act.pf.inf} {what.acc+quality}.",
     "{who} {modal.impf.past} {when} {act.pf.inf} {what.acc+quality}."),
    (
        "{who} {modal.past} {act.base} {what.det+quality:act} {when}.",
        "{!when}, {who} {modal.past} {act.base} {what.det+quality:act}.",
    ),
    COMMON, 5,
)  # fmt: skip

MANAGED = Frame(
    "managed", "action",
    {"modal": fixed(WANTING[2:], "core")}
    | transitive([act for act in DELIBERATE if not act.reflexive and act.key != "watch"],
                 PAST_PEOPLE, optional(times("past"), 0.4))
    | {"where": fixed([None])},
    ("{who} {when} {modal.pf.past} {act.pf.inf} {what.acc+quality}.",),
    (
        "{who} {modal.past} {act.base} {what.the+quality} {when}.",
        "{!when}, {who} {modal.past} {act.base} {what.the+quality}.",
    ),
    COMMON, 6,
)  # fmt: skip

BEGIN = [
    verb("start/begin", "", "začít začn:e začal"),
    verb("stop", "", "přestat přestan:e přestal"),
]
STARTED = Frame(
    "started", "action",
    {"modal": fixed(BEGIN, "core")}
    | transitive([a for a in ONGOING if a.key not in {"buy", "sell", "send", "hang", "paint"}],
                 PAST_PEOPLE, optional(times("past"), 0.4))
    | {"where": fixed([None]), "quality": fixed([None])},
    ("{who} {when} {modal.pf.past} {act.impf.inf} {what.acc}.",),
    (
        "{who} {modal.past} {act.ing0} {what.the} {when}.",
        "{!when}, {who} {modal.past} {act.ing0} {what.the}.",
    ),
    COMMON, 4,
)  # fmt: skip

ACTIVITY_NOW = Frame(
    "activity_now", "activity",
    {
        "act": fixed(lexicon.activities(), "core"),
        "who": fixed(PRESENT_PEOPLE),
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
        "who": fixed(PAST_PEOPLE),
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
        "who": fixed(PRESENT_PEOPLE),
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

FRAMES = [
    DONE, NOT_DONE, NOT_YET, ONGOING_NOW, HABIT, OFTEN, NEVER, PLAN, MODAL, SHOULD, HAD_TO, MANAGED,
    STARTED, ACTIVITY_NOW, ACTIVITY_PAST, TOGETHER, GLADLY,
]  # fmt: skip
