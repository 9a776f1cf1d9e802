"""Frames of giving, of quantities, and of verbs that govern a preposition or a case."""

from __future__ import annotations

from pipeline.sample import lexicon
from pipeline.sample.frame import Frame, Options, Slot
from pipeline.sample.frames.shared import (
    COMMON,
    PAST_PEOPLE,
    PRESENT_PEOPLE,
    QUALITY,
    SOMEBODY,
    THIRD,
    fixed,
    optional,
    times,
    verb,
)
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import HE, I_MAN, NP, SHE, WE, Action, Phrase

GIVES = [
    verb("give", "", "dát d:á dal"), verb("lend", "", "půjčit půjč:í půjčil"),
    verb("show", "", "ukázat ukáž:e ukázal"), verb("send", "", "poslat pošl:e poslal"),
    verb("bring", "", "přinést přines:e přinesl"), verb("sell", "", "prodat prod:á prodal"),
]  # fmt: skip

GIFTS = [
    np for np in lexicon.things("give", "show", "borrow")
    if not np.plural or "give" in np.noun.groups
]  # fmt: skip


def receivers(meaning: Meaning) -> Options:
    """Somebody else than the giver."""
    who = meaning["who"]
    pronouns = [I_MAN, HE, SHE, WE] * 12 if isinstance(who, NP) else []
    return [*[np for np in THIRD if np != who], *pronouns]


GAVE = Frame(
    "gave", "giving",
    {"act": fixed(GIVES, "core"), "who": fixed(PAST_PEOPLE), "whom": Slot(receivers),
     "what": fixed(GIFTS), "quality": QUALITY, "when": optional(times("past"), 0.4)},
    ("{when} {who} {act.pf.past} {whom.dat} {what.acc+quality}.",
     "{who} {when} {act.pf.past} {whom.dat} {what.acc+quality}."),
    ("{who} {act.past} {whom.obj} {what.a+quality} {when}.",
     "{who} {act.past} {what.a+quality} to {whom.obj} {when}.",
     "{!when}, {who} {act.past} {whom.obj} {what.a+quality}."),
    COMMON, 9,
)  # fmt: skip


def governing(
    name: str, act: Action, case: str, what: Options, article: str = "the", weight: int = 3
) -> Frame:
    """Present and past of a verb that governs a preposition or a case."""
    past = Phrase.of("", "")
    return Frame(
        name, act.theme or "feelings",
        {"who": fixed(PRESENT_PEOPLE),
         "what": Slot(lambda m: [np for np in what if np != m["who"]]),
         "past": fixed([None, past], "core")},
        (f"{{who}} {{act.impf.pres}} {{what.{case}}}{{-past}}.",
         f"{{who}} {{act.impf.past}} {{what.{case}}}{{!past}}."),
        (f"{{who}} {{is}} {{act.ing}} {{what.{article}}}{{-past}}.",
         f"{{who}} {{act.pres}} {{what.{article}}}{{-past}}.",
         f"{{who}} {{was}} {{act.ing}} {{what.{article}}}{{!past}}.",
         f"{{who}} {{act.past}} {{what.{article}}}{{!past}}."),
        COMMON | {"act": act}, weight,
    )  # fmt: skip


GOVERNING = [
    governing("wait", verb("wait for", "čekat ček:á čekal", theme="travel"), "na.acc",
              [*SOMEBODY, *[np for np in lexicon.things("transport") if not np.plural] * 15]),
    governing("talk", verb("talk about/speak about", "mluvit mluv:í mluvil", theme="leisure"),
              "o.loc", [*SOMEBODY, *lexicon.things("watch", "visit", "explain") * 2]),
    governing("care", verb("look after/take care of", "starat star:á staral", "", "se",
                           theme="people"), "o.acc", [*SOMEBODY, *lexicon.things("animal") * 3]),
    governing("help", verb("help", "pomáhat pomáh:á pomáhal", theme="people"), "dat", SOMEBODY),
    governing("look", verb("look at", "dívat dív:á díval", "", "se", theme="leisure"), "na.acc",
              lexicon.things("photograph", "animal", "hang")),
    governing("search", verb("look for/search for", "hledat hled:á hledal", theme="house"), "acc",
              lexicon.things("lose")),
]  # fmt: skip

LOOKS_FORWARD = Frame(
    "looks_forward", "feelings",
    {"who": fixed(PRESENT_PEOPLE),
     "what": fixed([np for np in lexicon.things("event", "watch", "meal") if not np.plural])},
    ("{who} {act.impf.pres} {what.na.acc}.",),
    ("{who} {is} looking forward to {what.the}.", "{who} {look.pres} forward to {what.the}."),
    COMMON | {"act": verb("look forward to", "těšit těš:í těšil", "", "se"), "look": verb("look")},
    3,
)  # fmt: skip

FEARS = Frame(
    "fears", "feelings",
    {"who": fixed(PRESENT_PEOPLE),
     "what": fixed([np for np in lexicon.things("animal", "medic") if np.plural])},
    ("{who} {act.impf.pres} {what.gen}.",),
    ("{who} {is} afraid of {what.bare}.", "{who} {is} scared of {what.bare}.",
     "{who} {fear.pres} {what.bare}."),
    COMMON | {"act": verb("fear", "bát boj:í bál", "", "se"), "fear": verb("fear")}, 2,
)  # fmt: skip

MEASURES = [
    Phrase.of("kilo", "a kilo of/a kilogram of", "weigh"),
    Phrase.of("půl kila", "half a kilo of/half a kilogram of", "weigh"),
    Phrase.of("dvě kila", "two kilos of/two kilograms of", "weigh"),
    Phrase.of("litr", "a litre of/one litre of", "pour"),
    Phrase.of("láhev", "a bottle of/one bottle of", "pour"),
    Phrase.of("dvě láhve", "two bottles of", "pour"),
    Phrase.of("sklenici", "a glass of/one glass of", "pour"),
    Phrase.of("šálek", "a cup of/one cup of", "káva čaj kakao"),
]


def stuff(meaning: Meaning) -> Options:
    """What a measure measures: a mass, or things in the plural."""
    measure = meaning["measure"]
    assert isinstance(measure, Phrase)
    found = lexicon.things(*sorted(measure.groups))
    return [np for np in found if np.noun.mass or np.plural]


QUANTITY = Frame(
    "quantity", "kitchen",
    {"who": fixed(PAST_PEOPLE), "measure": fixed(MEASURES, "detail"), "what": Slot(stuff),
     "act": fixed([verb("buy/get", "", "koupit koup:í koupil"),
                   verb("bring", "", "přinést přines:e přinesl"),
                   verb("order", "", "objednat objedn:á objednal", "si")], "core")},
    ("{who} {act.pf.past} {measure}~{what.gen}.",),
    ("{who} {act.past} {measure} {what.bare}.", "{who} {has} {act.pp0} {measure} {what.bare}."),
    COMMON, 4,
)  # fmt: skip

NEEDS = Frame(
    "needs", "kitchen",
    {"who": fixed(PRESENT_PEOPLE), "measure": fixed(MEASURES, "detail"), "what": Slot(stuff)},
    ("{who} {act.impf.pres} {measure}~{what.gen}.",),
    ("{who} {act.pres} {measure} {what.bare}.",),
    COMMON | {"act": verb("need", "potřebovat potřebuj:j potřeboval")}, 3,
)  # fmt: skip

FRAMES = [*GOVERNING, GAVE, LOOKS_FORWARD, FEARS, QUANTITY, NEEDS]
