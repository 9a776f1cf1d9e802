"""Frames about things: where they are, how they are, what they cost, how they compare."""

from __future__ import annotations

from functools import cache

from pipeline.sample import lexicon
from pipeline.sample.frame import Frame, Options, Slot
from pipeline.sample.frames.shared import (
    BE,
    COMMON,
    DELIBERATE,
    PAST_PEOPLE,
    QUALITY,
    fixed,
    objects,
    thing,
    verb,
)
from pipeline.sample.frames.speech import ADDRESSED
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import NP, Adjective, Phrase

SPOTS = fixed(lexicon.group(lexicon.places(), "spot"))

SMALL = [np for np in lexicon.things("lie_thing") if not np.plural]


@cache
def counted(*groups: str) -> list[NP]:
    """Counted things, from two to eight."""
    countable = [
        n for n in lexicon.nouns()
        if n.groups & set(groups) and not (n.mass or n.plural_only)
    ]  # fmt: skip
    return [NP(n, plural=True, count=k) for n in countable for k in (2, 3, 4, 5, 6, 7, 8)]


LIE = verb("lie", "ležet lež:í ležel")

THERE_IS = Frame(
    "there_is", "house",
    {
        "where": SPOTS,
        "what": fixed([*SMALL * 2, *counted("lie_thing")]),
        "quality": Slot(lambda m: [None] if thing(m).count else QUALITY.options(m), "detail"),
        "pose": fixed([BE, LIE], "core"),
    },
    ("{where} {pose.impf.pres:what} {what.nom+quality}.",),
    (
        "There {is:what} {what.a+quality} {where}.",
        "{where}, there {is:what} {what.a+quality}.",
        "There {is:what} {what.a+quality} lying {where}.",
    ),
    COMMON, 8,
)  # fmt: skip

WHERE_IT_IS = Frame(
    "where_it_is", "house",
    {"what": fixed(SMALL), "quality": QUALITY, "where": SPOTS},
    ("{what.nom+quality} {be.impf.pres:what} {where}.",),
    ("{what.the+quality} {is:what} {where}.", "{what.the+quality} {is:what} lying {where}."),
    COMMON, 4,
)  # fmt: skip

PREDICATES = [
    Adjective(lemma, tuple(english.split("/")), groups=frozenset(groups.split()))
    for lemma, english, groups in (
        ("drahý", "expensive/pricey", "goods clothes"),
        ("levný", "cheap/inexpensive", "goods clothes"),
        ("hezký", "nice/attractive", "clothes photograph"),
        ("krásný", "beautiful/lovely", "zahrada obraz hrad most galerie kostel růže"),
        ("zajímavý", "interesting", "read watch výstava muzeum"),
        ("nudný", "boring/dull", "read watch výstava"),
        ("dlouhý", "long", "read watch sukně kabát most"),
        ("krátký", "short", "read watch sukně"),
        ("důležitý", "important", "sign projekt úkol otázka pravidlo"),
        ("složitý", "complicated/complex", "solve explain smlouva"),
        ("jednoduchý", "simple/easy", "solve explain"),
        ("výborný", "delicious/excellent", "food"),
        ("sladký", "sweet", "koláč dort čokoláda med pomeranč hruška limonáda"),
        ("slaný", "salty", "polévka omáčka sýr maso ryba"),
        ("studený", "cold", "polévka káva čaj voda mléko maso"),
        ("horký", "hot", "polévka káva čaj voda"),
        ("velký", "big/large", "room clothes stůl zahrada hrad"),
        ("malý", "small/little", "room clothes stůl zahrada"),
        ("těžký", "heavy", "kufr krabice balík batoh stůl taška koberec"),
        ("pohodlný", "comfortable", "židle boty polštář kabát šaty kalhoty"),
        ("hladový", "hungry", "pet big_animal"),
        ("špinavý", "dirty", "room clothes wash_thing podlaha"),
        ("čistý", "clean", "room clothes wash_thing podlaha"),
    )
]

STATES = [
    Adjective(lemma, tuple(english.split("/")), groups=frozenset(groups.split()))
    for lemma, english, groups in (
        ("prázdný", "empty", "láhev krabice lednička kufr zásuvka skříň peněženka restaurace"),
        ("otevřený", "open", "okno dveře opens muzeum galerie"),
        ("zavřený", "closed/shut", "okno dveře opens muzeum galerie"),
        ("rozbitý", "broken", "televize pračka lednička telefon počítač lampa hodinky auto"),
        ("hotový", "finished/done", "projekt úkol obraz román zpráva seznam"),
    )
]

DEGREES = [
    Phrase.of("velmi", "very/really"),
    Phrase.of("docela", "quite/rather"),
    Phrase.of("příliš", "too"),
]
EXCESS = {"drahý", "dlouhý", "krátký", "složitý", "jednoduchý", "sladký", "slaný", "studený",
          "horký", "velký", "malý", "těžký", "nudný", "špinavý"}  # fmt: skip
"""Of what there can be too much."""


def described(meaning: Meaning) -> Options:
    """What an adjective in `state` can be said of."""
    state = meaning["state"]
    assert isinstance(state, Adjective)
    return _described(state)


@cache
def _described(state: Adjective) -> Options:
    return [np for np in lexicon.things(*sorted(state.groups)) if state.describes(np.noun)]


def degrees(meaning: Meaning) -> Options:
    """Degrees, for adjectives that have them."""
    state = meaning["state"]
    assert isinstance(state, Adjective)
    if state not in PREDICATES or state.lemma == "výborný":
        return [None]
    return [*(DEGREES if state.lemma in EXCESS else DEGREES[:2]), None, None]


STATE = {
    "state": fixed([*PREDICATES, *STATES], "core"),
    "what": Slot(described),
    "degree": Slot(degrees, "detail"),
}

THING_IS = Frame(
    "thing_is", "quality", STATE,
    ("{what.nom} {be.impf.pres:what} {degree} {state.nom}.",),
    ("{what.the} {is:what} {degree} {state}.",),
    COMMON, 9,
)  # fmt: skip

THING_WAS = Frame(
    "thing_was", "quality", STATE,
    ("{what.nom} {be.impf.past:what} {degree} {state.nom}.",),
    ("{what.the} {was:what} {degree} {state}.",),
    COMMON, 5,
)  # fmt: skip

THING_IS_NOT = Frame(
    "thing_is_not", "quality", STATE | {"degree": fixed([None])},
    ("{what.nom} {be.impf.neg.pres:what} {state.nom}.",),
    ("{what.the} {isnt:what} {state}.",),
    COMMON, 4,
)  # fmt: skip

COMPARABLE = ("clothes", "text", "room", "pet", "big_animal")


def compared(meaning: Meaning) -> Options:
    """What an adjective can compare."""
    how = meaning["how"]
    assert isinstance(how, Adjective)
    groups = how.groups & set(COMPARABLE)
    return [np for np in lexicon.things(*sorted(groups)) if not np.plural]


def comparable(meaning: Meaning) -> Options:
    """What it can be compared with: another thing of the same group."""
    first, how = thing(meaning).noun, meaning["how"]
    assert isinstance(how, Adjective)
    groups = [g for g in COMPARABLE if g in first.groups and g in how.groups]
    return [np for np in lexicon.things(*groups) if np.noun != first and not np.plural]


HOW = [a for a in lexicon.adjectives() if a.comparative and a.groups & set(COMPARABLE)]

COMPARES = Frame(
    "compares", "quality",
    {
        "how": fixed(HOW, "core"),
        "what": Slot(compared),
        "other": Slot(comparable),
    },
    ("{what.nom} {be.impf.pres:what} {how.comp:what} než {other.nom}.",),
    ("{what.the} {is:what} {how.comp} than {other.the}.",),
    COMMON, 6,
)  # fmt: skip


def stated(meaning: Meaning) -> Options:
    """Qualities that a sentence can state of `what`."""
    noun = thing(meaning).noun
    found = [state for state in (*PREDICATES, *STATES) if state.describes(noun)]
    return found or [Adjective("nový", ("new",))]


RELATIVE = Frame(
    "relative", "quality",
    {"act": fixed([a for a in DELIBERATE if a.key in {"buy", "choose", "read", "borrow", "cook",
                                                    "bake", "watch", "sign", "repair"}], "core"),
     "who": fixed(PAST_PEOPLE), "what": Slot(objects), "state": Slot(stated, "core")},
    ("{what.nom}, {which.acc:what} {who} {act.pf.past}, {be.impf.pres:what} {state.nom:what}.",),
    ("{what.the} {who} {act.past} {is:what} {state}.",
     "{what.the} that {who} {act.past} {is:what} {state}."),
    COMMON | {"which": Adjective("který", ("that",))}, 6,
)  # fmt: skip

HOW_MUCH = Frame(
    "how_much", "shopping",
    {"what": fixed(lexicon.things("goods", "clothes", "buyable", "order")), "quality": QUALITY},
    ("Kolik {act.impf.pres:what} {what.nom+quality}?",),
    ("How much {is:what} {what.the+quality}?", "How much {do:what} {what.the+quality} cost?"),
    COMMON | {"act": verb("cost", "stát stoj:í stál")}, 4,
)  # fmt: skip

DO_YOU_HAVE = Frame(
    "do_you_have", "shopping",
    {"who": ADDRESSED, "what": fixed(lexicon.things("goods", "clothes", "buyable", "order")),
     "quality": QUALITY},
    ("{have.impf.pres} {who} {what.acc+quality}?",),
    ("Do you have {what.a+quality}?", "Have you got {what.a+quality}?"),
    COMMON, 3,
)  # fmt: skip

FRAMES = [
    THERE_IS,
    WHERE_IT_IS,
    THING_IS,
    THING_WAS,
    THING_IS_NOT,
    COMPARES,
    RELATIVE,
    HOW_MUCH,
    DO_YOU_HAVE,
]
