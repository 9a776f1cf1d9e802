"""Building blocks of the frames: slots, who does it, what, where and when."""

from __future__ import annotations

from functools import cache

from pipeline.sample import lexicon
from pipeline.sample.czech import Verb
from pipeline.sample.frame import Options, Role, Slot
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import HE, I_MAN, I_WOMAN, NP, SHE, WE, Action, Phrase


def verb(
    english: str, imperfective: str = "", perfective: str = "", reflexive: str = "", theme: str = ""
) -> Action:
    """An action of a frame itself, outside the tables."""
    return Action(
        key=english,
        imperfective=Verb.parse(imperfective) if imperfective else None,
        perfective=Verb.parse(perfective) if perfective else None,
        reflexive=reflexive,
        english=tuple(english.split("/")),
        theme=theme,
    )


BE = verb("be", "být jsem,jsi,je,jsme,jste,jsou byl", "být bud:e byl")

HAVE = verb("have", "mít m:á měl")

COMMON = {"be": BE, "have": HAVE}

PAST_PEOPLE = lexicon.people(I_MAN, I_WOMAN, WE, HE, SHE)

PRESENT_PEOPLE = lexicon.people(I_MAN, WE)

THIRD = lexicon.people()

SINGLE = [np for np in THIRD if isinstance(np, NP) and not np.english_plural]

SOMEBODY = [np for np in THIRD if isinstance(np, NP)]


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
    return _qualities(thing(meaning))


def usual_objects(meaning: Meaning) -> Options:
    """What the action is done to again and again: one "a" after another is plural (čte knihy)."""
    found = [np for np in objects(meaning) if isinstance(np, NP)]
    if action(meaning).article == "the":
        return found
    return [np for np in found if np.plural or np.noun.mass or np.noun.plural_only]


def thing(meaning: Meaning, name: str = "what") -> NP:
    """The noun phrase that fills a slot."""
    filler = meaning[name]
    assert isinstance(filler, NP)
    return filler


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

IMPERFECTIVE = [act for act in lexicon.actions() if act.imperfective]

WHAT = Slot(objects)

QUALITY = Slot(qualities, "detail")

WHERE = Slot(places, "detail")

GROWN = [act for act in PERFECTIVE if act.theme == "work" or act.key in {"sell", "repair", "order"}]
"""What children do not do in this corpus."""


@cache
def _grown(who: tuple) -> Options:
    return [p for p in who if not (isinstance(p, NP) and "young" in p.noun.groups)]


def transitive(acts: Options, who: Options, when: Slot) -> dict[str, Slot]:
    """Slots of a sentence with an object."""
    return {
        "act": fixed(acts, "core"),
        "who": Slot(lambda m: _grown(tuple(who)) if m["act"] in GROWN else who),
        "what": WHAT,
        "quality": QUALITY,
        "where": WHERE,
        "when": when,
    }
