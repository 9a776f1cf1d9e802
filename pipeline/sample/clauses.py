"""Frames of motion, giving, prepositional verbs, questions, requests and complex sentences."""

from __future__ import annotations

from pipeline.sample import lexicon
from pipeline.sample.events import (
    ACTS,
    BE,
    COMMON,
    DELIBERATE,
    PAST_PEOPLE,
    PRESENT_PEOPLE,
    QUALITY,
    THIRD,
    WHAT,
    fixed,
    objects,
    optional,
    times,
    verb,
)
from pipeline.sample.frames import Frame, Options, Slot
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import (
    HE,
    I_MAN,
    I_WOMAN,
    NP,
    SHE,
    WE,
    YOU,
    YOU_POLITE,
    Action,
    Adjective,
    Phrase,
    Pronoun,
)
from pipeline.sample.states import BAD, GOOD, MOODS, STATE, WEATHER

# --- motion --------------------------------------------------------------------------------------

VEHICLES = [
    Phrase.of("autem", "by car"), Phrase.of("vlakem", "by train", "", en_took="the train"),
    Phrase.of("autobusem", "by bus", "", en_took="the bus"),
    Phrase.of("na kole", "by bike/on a bike"),
    Phrase.of("tramvají", "by tram", "", en_took="the tram"),
    Phrase.of("taxíkem", "by taxi/in a taxi", "", en_took="a taxi"),
    Phrase.of("metrem", "by underground/by subway", "", en_took="the underground/the subway"),
]  # fmt: skip
FAR_VEHICLES = [*VEHICLES[:3], Phrase.of("letadlem", "by plane")]
NEAR = [p for p in lexicon.group(lexicon.places(), "go") if p.english[0][1][0] != "at home"]
FAR = lexicon.group(lexicon.places(), "far")
GO, RIDE, RETURN, SET_OUT, ARRIVE = lexicon.moves()
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

# --- giving --------------------------------------------------------------------------------------

GIVES = [
    verb("give", "", "dát d:á dal"), verb("lend", "", "půjčit půjč:í půjčil"),
    verb("show", "", "ukázat ukáž:e ukázal"), verb("send", "", "poslat pošl:e poslal"),
    verb("bring", "", "přinést přines:e přinesl"), verb("sell", "", "prodat prod:á prodal"),
]  # fmt: skip
GIFTS = lexicon.things("give", "show", "borrow")


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

# --- verbs with a preposition or a case of their own ---------------------------------------------


def governing(
    name: str, act: Action, case: str, what: Options, article: str = "the", weight: int = 3
) -> Frame:
    """Present and past of a verb that governs a preposition or a case."""
    tense = Phrase.of("", "", "", cs_past="")
    return Frame(
        name, act.theme or "feelings",
        {"who": fixed(PRESENT_PEOPLE), "what": fixed(what),
         "past": fixed([None, tense], "core")},
        (f"{{who}} {{act.impf.pres}} {{what.{case}}}{{-past}}.",
         f"{{who}} {{act.impf.past}} {{what.{case}}}{{!past.past}}."),
        (f"{{who}} {{is}} {{act.ing}} {{what.{article}}}{{-past}}.",
         f"{{who}} {{act.pres}} {{what.{article}}}{{-past}}.",
         f"{{who}} {{was}} {{act.ing}} {{what.{article}}}{{!past}}.",
         f"{{who}} {{act.past}} {{what.{article}}}{{!past}}."),
        COMMON | {"act": act}, weight,
    )  # fmt: skip


SOMEBODY = [np for np in THIRD if isinstance(np, NP)]
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
     "what": fixed([np for np in lexicon.things("visit", "watch", "meal") if not np.plural])},
    ("{who} {act.impf.pres} {what.na.acc}.",),
    ("{who} {is} looking forward to {what.the}.", "{who} {look.pres} forward to {what.the}."),
    COMMON | {"act": verb("look forward to", "těšit těš:í těšil", "", "se"), "look": verb("look")},
    3,
)  # fmt: skip
FEARS = Frame(
    "fears", "feelings",
    {"who": fixed(PRESENT_PEOPLE),
     "what": fixed([np for np in lexicon.things("animal", "medic") if np.plural
                    or "medic" in np.noun.groups])},
    ("{who} {act.impf.pres} {what.gen}.",),
    ("{who} {is} afraid of {what.bare}.", "{who} {is} scared of {what.bare}.",
     "{who} {fear.pres} {what.bare}."),
    COMMON | {"act": verb("fear", "bát boj:í bál", "", "se"), "fear": verb("fear")}, 2,
)  # fmt: skip
MEASURES = [
    Phrase.of("kilo", "a kilo of", "weigh"), Phrase.of("půl kila", "half a kilo of", "weigh"),
    Phrase.of("dvě kila", "two kilos of", "weigh"), Phrase.of("litr", "a litre of", "pour"),
    Phrase.of("láhev", "a bottle of", "pour"), Phrase.of("dvě láhve", "two bottles of", "pour"),
    Phrase.of("sklenici", "a glass of", "pour"),
    Phrase.of("šálek", "a cup of", "káva čaj kakao"),
]  # fmt: skip


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

# --- questions and requests ----------------------------------------------------------------------

ADDRESSED = fixed([YOU, YOU, YOU_POLITE])
DID_YOU = Frame(
    "did_you", "question",
    {"act": fixed(DELIBERATE, "core"), "who": fixed([YOU, YOU_POLITE] * 40 + SOMEBODY),
     "what": WHAT, "quality": QUALITY, "when": optional(times("past"), 0.4)},
    ("{act.pf.past} {who} {when} {what.acc+quality}?",),
    ("Did {who} {act.base} {what.det+quality:act} {when}?",
     "{has} {who} {act.pp} {what.det+quality:act} {-when}?"),
    COMMON, 6,
)  # fmt: skip
WHO_DID = Frame(
    "who_did", "question",
    {"act": fixed(ACTS, "core"), "what": WHAT, "quality": QUALITY,
     "when": optional(times("past"), 0.3)},
    ("Kdo {when} {act.pf.past} {what.acc+quality}?",),
    ("Who {act.past} {what.the+quality} {when}?",),
    COMMON | {"who": Adjective("", ())}, 3,
)  # fmt: skip
WHY_NOT = Frame(
    "why_not", "question",
    {"act": fixed(DELIBERATE, "core"), "who": fixed([YOU, YOU_POLITE] * 40 + SOMEBODY),
     "what": WHAT, "quality": QUALITY},
    ("Proč {who} {act.pf.neg.past} {what.acc+quality}?",),
    ("Why didn't {who} {act.base} {what.the+quality}?",
     "Why did {who} not {act.base} {what.the+quality}?"),
    COMMON, 4,
)  # fmt: skip
WHEN_WILL = Frame(
    "when_will", "question", WHY_NOT.slots,
    ("Kdy {who} {act.pf.fut} {what.acc+quality}?",),
    ("When will {who} {act.base} {what.the+quality}?",
     "When {is} {who} going to {act.base} {what.the+quality}?"),
    COMMON, 4,
)  # fmt: skip
WHERE_IS = Frame(
    "where_is", "question",
    {"what": fixed([*SOMEBODY, *lexicon.things("lie_thing", "lose", "opens", "pet") * 2])},
    ("Kde {be.impf.pres:what} {what.nom}?",),
    ("Where {is:what} {what.the}?",),
    COMMON, 3,
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
ORDERS = [act for act in DELIBERATE if act.imperative]
REQUEST = Frame(
    "request", "request",
    {"act": fixed(ORDERS, "core"), "what": WHAT, "quality": QUALITY,
     "polite": fixed([Phrase.of("", ""), None, None], "detail")},
    ("{act.pf.vy} {what.acc+quality}, prosím{!polite}.",
     "{act.pf.ty} {what.acc+quality}, prosím{-polite}.",
     "Prosím, {act.pf.ty} {what.acc+quality}{-polite}."),
    ("{act.base} {what.the+quality}, please.", "Please {act.base} {what.the+quality}."),
    COMMON, 6,
)  # fmt: skip
COULD_YOU = Frame(
    "could_you", "request",
    {"ask": fixed([Phrase.of("můžete mi", "can you"), Phrase.of("mohl byste mi", "could you"),
                   Phrase.of("můžeš mi", "can you")], "detail"),
     "act": fixed(GIVES[1:5], "core"), "what": fixed(GIFTS), "quality": QUALITY},
    ("{ask} {act.pf.inf} {what.acc+quality}?",),
    ("{ask} {act.base} me {what.the+quality}?", "{ask} {act.base} me {what.the+quality}, please?"),
    COMMON, 4,
)  # fmt: skip

# --- complex sentences ---------------------------------------------------------------------------

OPINIONS = [
    Phrase.of("myslím", "I think"), Phrase.of("vím", "I know"), Phrase.of("doufám", "I hope"),
    Phrase.of("bojím se", "I am afraid"), Phrase.of("zdá se", "it seems"),
    Phrase.of("jsem si jistý", "I am sure"),
]  # fmt: skip
THINK_WEATHER = Frame(
    "think_weather", "weather",
    {"view": fixed(OPINIONS, "detail"), "when": fixed(times("future")),
     "sky": fixed(WEATHER, "core"), "where": optional(FAR, 0.3)},
    ("{view}, že {when} {sky.fut} {where} {sky.fut_end}.",),
    ("{view} that {sky.fut} {where} {when}.", "{view} {sky.fut} {where} {when}."),
    COMMON, 5,
)  # fmt: skip
THINK_DONE = Frame(
    "think_done", "action",
    {"view": fixed(OPINIONS, "detail"), "act": fixed(DELIBERATE, "core"), "who": fixed(SOMEBODY),
     "what": WHAT, "quality": QUALITY},
    ("{view}, že {who} {act.pf.past} {what.acc+quality}.",),
    ("{view} that {who} {act.past} {what.det+quality:act}.",
     "{view} {who} {act.past} {what.det+quality:act}.",
     "{view} that {who} {has} {act.pp} {what.det+quality:act}."),
    COMMON, 6,
)  # fmt: skip
SAID = Frame(
    "said", "action",
    {"teller": fixed(SOMEBODY), "say": fixed([
        verb("say", "", "říct řekn:e řekl"), verb("claim", "tvrdit tvrd:í tvrdil", "tvrdit tvrd:í tvrdil"),
        verb("write", "", "napsat napíš:e napsal")], "core"),
     "act": fixed(DELIBERATE, "core"),
     "who": Slot(lambda m: [np for np in SOMEBODY if np != m["teller"]]), "what": WHAT},
    ("{teller} {say.pf.past:teller}, že {who} {act.pf.fut} {what.acc}.",),
    ("{teller} {say.past} that {who} would {act.base} {what.det:act}.",
     "{teller} {say.past} {who} would {act.base} {what.det:act}."),
    COMMON, 6,
)  # fmt: skip
INDOORS = {"sleep", "rest", "study", "chess", "cards", "piano"}
OUTDOORS = {"run", "cycle", "walk", "football", "tennis"}
HOME = lexicon.group(lexicon.places(), "home")
OUTSIDE = lexicon.group(lexicon.places(), "outside")


def weather_activity(meaning: Meaning) -> Options:
    """What one does in such weather."""
    keys = INDOORS if meaning["sky"] in BAD else OUTDOORS
    return [act for act in lexicon.activities() if act.key in keys]


def weather_place(meaning: Meaning) -> Options:
    """Where one is in such weather."""
    if meaning["sky"] in BAD:
        return HOME
    act = meaning["act"]
    assert isinstance(act, Action)
    return lexicon.group(lexicon.places(), "pitch") if "pitch" in act.places else OUTSIDE


WHEN = Frame(
    "when", "weather",
    {"sky": fixed(WEATHER, "core"), "act": Slot(weather_activity, "core"),
     "who": fixed(PAST_PEOPLE), "where": Slot(weather_place)},
    ("Když {sky.past} {sky.past_end}, {act.impf.past.bare} {who} {where} {act.comp}.",
     "{who} {act.impf.past} {where}, když {sky.past} {sky.past_end}."),
    ("When {sky.past}, {who} {act.past} {where}.", "{who} {act.past} {where} when {sky.past}.",
     "While {sky.past}, {who} {was} {act.ing} {where}."),
    COMMON, 6,
)  # fmt: skip
DAYS = [t for t in times("past") if not t.czech[0][1].startswith(("před ", "minul"))]
STAYED = Frame(
    "stayed", "weather",
    {"who": fixed(PAST_PEOPLE), "sky": fixed(BAD, "core"), "when": optional(DAYS, 0.5)},
    ("{when} {who} {stay.pf.past} doma, protože {sky.past} {sky.past_end}.",
     "{who} {when} {stay.pf.past} doma, protože {sky.past} {sky.past_end}."),
    ("{who} {stay.past} at home {when} because {sky.past}.",
     "{who} {stay.past} at home {when} since {sky.past}.",
     "Because {sky.past}, {who} {stay.past} at home {when}."),
    COMMON | {"stay": verb("stay", "", "zůstat zůstan:e zůstal")}, 4,
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
IF_WEATHER = Frame(
    "if", "weather",
    {"sky": fixed(GOOD, "core"), "when": fixed(times("future"), "detail"),
     "who": fixed(PRESENT_PEOPLE), "to": fixed(OUTSIDE)},
    ("Jestli {sky.fut} {when} {sky.fut_end}, {go.pf.fut} {who} {to.to}.",),
    ("If {sky.if} {when}, {who} will go {to.to}.", "{who} will go {to.to} if {sky.if} {when}."),
    COMMON | {"go": GO}, 4,
)  # fmt: skip


def stated(meaning: Meaning) -> Options:
    """Qualities that a sentence can state of `what`."""
    what = meaning["what"]
    assert isinstance(what, NP)
    return [s for s in STATE["state"].options({}) if isinstance(s, Adjective)
            and s.describes(what.noun)] or [Adjective("nový", ("new",))]  # fmt: skip


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

FRAMES = [
    WENT, WILL_GO, RETURNED, NEVER_BEEN, GAVE, *GOVERNING, LOOKS_FORWARD, FEARS, QUANTITY, NEEDS,
    DID_YOU, WHO_DID, WHY_NOT, WHEN_WILL, WHERE_IS, HOW_MUCH, DO_YOU_HAVE, REQUEST, COULD_YOU,
    THINK_WEATHER, THINK_DONE, SAID, WHEN, STAYED, DID_NOT_GO, IF_WEATHER, RELATIVE,
]  # fmt: skip
