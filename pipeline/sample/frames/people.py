"""Frames about people: feelings, health, likes, age."""

from __future__ import annotations

from pipeline.sample import lexicon
from pipeline.sample.czech import numeral
from pipeline.sample.english import NUMBERS
from pipeline.sample.frame import Frame, Options, Slot
from pipeline.sample.frames.shared import (
    COMMON,
    PAST_PEOPLE,
    PRESENT_PEOPLE,
    QUALITY,
    SINGLE,
    THIRD,
    fixed,
    optional,
    times,
    verb,
)
from pipeline.sample.frames.things import DEGREES
from pipeline.sample.frames.travel import GO, NEAR
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import I_MAN, NP, SHE, WE, Adjective, Phrase

MOODS = [
    Adjective(lemma, tuple(english.split("/")))
    for lemma, english in (
        ("unavený", "tired/exhausted"), ("nemocný", "ill/sick"), ("šťastný", "happy/glad"),
        ("smutný", "sad/unhappy"), ("veselý", "cheerful"), ("hladový", "hungry"),
        ("nervózní", "nervous"), ("naštvaný", "angry/annoyed"), ("spokojený", "satisfied/content"),
        ("zvědavý", "curious"), ("hrdý", "proud"), ("překvapený", "surprised"),
    )
]  # fmt: skip

PERSON = {
    "state": fixed(MOODS, "core"),
    "degree": fixed([*DEGREES[:2], None, None], "detail"),
}

PERSON_IS = Frame(
    "person_is", "feelings", {"who": fixed(PRESENT_PEOPLE)} | PERSON,
    ("{who} {be.impf.pres} {degree} {state.nom:who}.",),
    ("{who} {is} {degree} {state}.", "{who} {feel.pres} {degree} {state}."),
    COMMON | {"feel": verb("feel")}, 6,
)  # fmt: skip

PERSON_WAS = Frame(
    "person_was", "feelings",
    {"who": fixed(PAST_PEOPLE)} | PERSON | {"when": optional(times("past"), 0.7)},
    ("{!when} {be.impf.past} {who} {degree} {state.nom:who}.",
     "{who} {be.impf.past} {when} {degree} {state.nom:who}."),
    ("{who} {was} {degree} {state} {when}.", "{!when}, {who} {was} {degree} {state}."),
    COMMON, 6,
)  # fmt: skip


def part(czech: str, past: str, has: str, hurts: str) -> Phrase:
    """A part of the body: nominative and past of bolet, "has a headache", "his head hurts"."""
    return Phrase.of(czech, hurts, "enpl" if hurts.endswith(("s", "feet")) else "",
                     cs_past=past, en_has=has)  # fmt: skip


PARTS = [
    part("hlava", "bolela", "a headache", "head"),
    part("břicho", "bolelo", "a stomach ache/a stomachache", "stomach"),
    part("zub", "bolel", "a toothache/toothache", "tooth"),
    part("záda", "bolela", "a backache/back pain", "back"),
    part("krk", "bolel", "a sore throat", "throat"),
    part("koleno", "bolelo", "a sore knee/a pain in the knee", "knee"),
    part("noha", "bolela", "a sore leg/a pain in the leg", "leg"),
    part("ucho", "bolelo", "an earache/earache", "ear"),
]

ACHE = Frame(
    "ache", "health",
    {"who": fixed([*SINGLE, *[I_MAN] * 30]), "part": fixed(PARTS, "core"),
     "when": optional([Phrase.of("dnes", "today")], 0.5)},
    ("{when} {who.acc} bolí {part}.", "{who.acc} {when} bolí {part}."),
    ("{who} {has} {part.has} {when}.", "{who.poss} {part} hurts {when}."),
    COMMON, 5,
)  # fmt: skip

ACHED = Frame(
    "ached", "health",
    {"who": fixed([*SINGLE, *[I_MAN] * 30]), "part": fixed(PARTS, "core"),
     "when": fixed(times("past"), "detail")},
    ("{when} {who.acc} {part.past} {part}.",),
    ("{who} {have.past} {part.has} {when}.", "{who.poss} {part} hurt {when}.",
     "{when}, {who} {have.past} {part.has}."),
    COMMON, 4,
)  # fmt: skip

ILLNESSES = [
    Phrase.of("rýmu", "a cold/a runny nose"), Phrase.of("chřipku", "the flu/flu"),
    Phrase.of("horečku", "a fever/a temperature"), Phrase.of("kašel", "a cough"),
    Phrase.of("angínu", "tonsillitis"), Phrase.of("zápal plic", "pneumonia"),
]  # fmt: skip

WEEKS = ("minulý", "před týdnem", "před měsícem", "o víkendu")

ILL = Frame(
    "ill", "health",
    {"who": fixed(PAST_PEOPLE), "illness": fixed(ILLNESSES, "core"),
     "when": fixed([t for t in times("past", "past_long") if t.czech[0][1].startswith(WEEKS)],
                   "detail")},
    ("{when} {have.impf.past} {who} {illness}.", "{who} {have.impf.past} {when} {illness}."),
    ("{who} {have.past} {illness} {when}.", "{when}, {who} {have.past} {illness}."),
    COMMON, 4,
)  # fmt: skip

ILL_NOW = Frame(
    "ill_now", "health",
    {"who": fixed(PRESENT_PEOPLE), "illness": fixed(ILLNESSES, "core"),
     "again": optional([Phrase.of("zase", "again")], 0.3)},
    ("{who} {have.impf.pres} {again} {illness}.",),
    ("{who} {have.pres} {illness} {again}.", "{who} {has} got {illness} {again}."),
    COMMON, 3,
)  # fmt: skip

LIKED = [np for np in lexicon.things("like", "like_pl") if np.noun.mass or np.plural]

LIKES = Frame(
    "likes", "liking",
    {"who": fixed(PRESENT_PEOPLE), "what": fixed(LIKED), "glad": fixed([Adjective("rád", ("",))])},
    ("{who} {have.impf.pres} {glad.short:who} {what.acc}.",),
    ("{who} {like.pres} {what.bare}.", "{who} {enjoy.pres} {what.bare}."),
    COMMON | {"like": verb("like/love"), "enjoy": verb("enjoy")}, 4,
)  # fmt: skip

DISLIKES = Frame(
    "dislikes", "liking", LIKES.slots,
    ("{who} {have.impf.neg.pres} {glad.short:who} {what.acc}.",),
    ("{who} {dont} like {what.bare}.", "{who} {dislike.pres} {what.bare}."),
    COMMON | {"dislike": verb("dislike")}, 4,
)  # fmt: skip

PLEASE = verb("please", "líbit líb:í líbil", "", "se")

TASTE = verb("taste", "chutnat chutn:á chutnal")

PLEASES = Frame(
    "pleases", "liking",
    {"who": fixed([*THIRD, *[I_MAN, WE] * 12]),
     "what": fixed(lexicon.things("clothes", "visit", "goods")),
     "quality": QUALITY},
    ("{who.dat} {please.impf.pres:what} {what.nom+quality}.",),
    ("{who} {like.pres} {what.the+quality}.", "{who} really {like.pres} {what.the+quality}."),
    COMMON | {"please": PLEASE, "like": verb("like")}, 5,
)  # fmt: skip

TASTED = Frame(
    "tasted", "liking",
    {"who": fixed([*THIRD, *[I_MAN, WE] * 12]),
     "what": fixed([np for np in lexicon.things("taste") if not np.plural]), "quality": QUALITY},
    ("{who.dat} {taste.impf.past:what} {what.nom+quality}.",),
    ("{who} {like.past} {what.the+quality}.", "{who} {enjoy.past} {what.the+quality}."),
    COMMON | {"taste": TASTE, "like": verb("like"), "enjoy": verb("enjoy")}, 4,
)  # fmt: skip

PERSONAL = [
    Adjective("", ("",), "starší", ("older",)), Adjective("", ("",), "mladší", ("younger",)),
    Adjective("", ("",), "vyšší", ("taller",)), Adjective("", ("",), "menší", ("shorter",)),
    Adjective("", ("",), "rychlejší", ("faster", "quicker")),
    Adjective("", ("",), "silnější", ("stronger",)),
    Adjective("", ("",), "bohatší", ("richer", "wealthier")),
]  # fmt: skip

PEOPLE_COMPARE = Frame(
    "people_compare", "quality",
    {"who": fixed([*SINGLE, *[I_MAN] * 15]), "how": fixed(PERSONAL, "core"),
     "other": Slot(lambda m: [np for np in SINGLE if np != m["who"]])},
    ("{who} {be.impf.pres} {how.comp:who} než {other.nom}.",),
    ("{who} {is} {how.comp} than {other}.",),
    COMMON, 4,
)  # fmt: skip


def years(number: int) -> Phrase:
    """An age: Czech verb and words (jsou tři roky, je pět let), English number."""
    few = number < 5
    words = f"{numeral(number, 'mi')} {'roky' if few else 'let'}"
    verbs = ("jsou", "byly", "budou") if few else ("je", "bylo", "bude")
    return Phrase.of(words, NUMBERS[number], cs_is=verbs[0], cs_was=verbs[1], cs_will=verbs[2])


AGES = {n: years(n) for n in (*range(2, 13), 15, 18, 20, 30, 40, 50, 60, 70, 80)}


def ages(meaning: Meaning) -> Options:
    """Ages that a person can have."""
    who = meaning["who"]
    if not isinstance(who, NP) or "name" in who.noun.groups:
        return [age for n, age in AGES.items() if n <= 50]
    if who.noun.lemma in {"syn", "dcera", "bratr", "sestra"}:
        return [age for n, age in AGES.items() if n <= 30]
    if who.noun.lemma in {"dědeček", "babička"}:
        return [AGES[60], AGES[70], AGES[80]]
    if who.noun.lemma in {"student", "studentka"}:
        return [AGES[18], AGES[20]]
    return [AGES[30], AGES[40], AGES[50], AGES[60]]


AGE = Frame(
    "age", "people",
    {"who": fixed([*SINGLE, *[I_MAN, SHE] * 12]),
     "age": Slot(ages, "core")},
    ("{who.dat} {age.is} {age}.",),
    ("{who} {is} {age} years old.", "{who} {is} {age}."),
    COMMON, 3,
)  # fmt: skip

DID_NOT_GO = Frame(
    "did_not_go", "feelings",
    {"who": fixed(PAST_PEOPLE), "to": fixed(NEAR),
     "state": fixed([m for m in MOODS if m.lemma in {"unavený", "nemocný", "nervózní", "naštvaný"}],
                    "core")},
    ("{who} {go.impf.neg.past} {to.to}, protože {be.impf.past} {state.nom:who}.",),
    ("{who} {didnt} go {to.to} because {who.pron} {was} {state}.",
     "{who} {didnt} go {to.to} since {who.pron} {was} {state}."),
    COMMON | {"go": GO}, 5,
)  # fmt: skip

FRAMES = [
    PERSON_IS,
    PERSON_WAS,
    ACHE,
    ACHED,
    ILL,
    ILL_NOW,
    LIKES,
    DISLIKES,
    PLEASES,
    TASTED,
    PEOPLE_COMPARE,
    AGE,
    DID_NOT_GO,
]
