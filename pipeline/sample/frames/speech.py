"""Frames of asking, requesting, thinking and saying."""

from __future__ import annotations

from pipeline.sample import lexicon
from pipeline.sample.frame import Frame, Slot
from pipeline.sample.frames.dealings import GIVES
from pipeline.sample.frames.shared import (
    COMMON,
    DELIBERATE,
    PERFECTIVE,
    QUALITY,
    SOMEBODY,
    WHAT,
    fixed,
    optional,
    times,
    verb,
)
from pipeline.sample.frames.weather import FAR_SKY, WEATHER
from pipeline.sample.lexicon import YOU, YOU_POLITE, Adjective, Phrase

ADDRESSED = fixed([YOU, YOU, YOU_POLITE])

DID_YOU = Frame(
    "did_you", "question",
    {"act": fixed(DELIBERATE, "core"), "who": fixed([*[YOU, YOU_POLITE] * 40, *SOMEBODY]),
     "what": WHAT, "quality": QUALITY, "when": optional(times("past"), 0.4)},
    ("{act.pf.past} {who} {when} {what.acc+quality}?",),
    ("Did {who} {act.base} {what.det+quality:act} {when}?",
     "{has} {who} {act.pp} {what.det+quality:act} {-when}?"),
    COMMON, 6,
)  # fmt: skip

WHO_DID = Frame(
    "who_did", "question",
    {"act": fixed(PERFECTIVE, "core"), "what": WHAT, "quality": QUALITY,
     "when": optional(times("past"), 0.3)},
    ("Kdo {when} {act.pf.past} {what.acc+quality}?",),
    ("Who {act.past} {what.the+quality} {when}?",),
    COMMON | {"who": Adjective("", ())}, 3,
)  # fmt: skip

WHY_NOT = Frame(
    "why_not", "question",
    {"act": fixed(DELIBERATE, "core"), "who": fixed([*[YOU, YOU_POLITE] * 40, *SOMEBODY]),
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

ORDERS = [act for act in DELIBERATE if act.imperative]

REQUEST = Frame(
    "request", "request",
    {"act": fixed(ORDERS, "core"), "what": WHAT, "quality": QUALITY,
     "polite": fixed([Phrase.of("", ""), None, None], "detail")},
    ("{act.pf.vy} {what.acc+quality}, prosím{!polite}.",
     "{act.pf.ty} {what.acc+quality}, prosím{-polite}.",
     "Prosím, {act.pf.ty} {what.acc+quality}{-polite}."),
    ("{act.base} {what.det+quality:act}, please.", "Please {act.base} {what.det+quality:act}."),
    COMMON, 6,
)  # fmt: skip

COULD_YOU = Frame(
    "could_you", "request",
    {"ask": fixed([Phrase.of("můžete mi", "can you"), Phrase.of("mohl byste mi", "could you"),
                   Phrase.of("můžeš mi", "can you")], "detail"),
     "act": fixed(GIVES[1:5], "core"), "what": fixed(lexicon.things("borrow", "lie_thing")),
     "quality": QUALITY},
    ("{ask} {act.pf.inf} {what.acc+quality}?",),
    ("{ask} {act.base} me {what.the+quality}?", "{ask} {act.base} me {what.the+quality}, please?"),
    COMMON, 4,
)  # fmt: skip

OPINIONS = [
    Phrase.of("myslím", "I think"), Phrase.of("vím", "I know"), Phrase.of("doufám", "I hope"),
    Phrase.of("bojím se", "I am afraid"), Phrase.of("zdá se", "it seems"),
    Phrase.of("jsem si jistý", "I am sure"),
]  # fmt: skip

THINK_WEATHER = Frame(
    "think_weather", "weather",
    {"view": fixed(OPINIONS, "detail"), "when": fixed(times("future")),
     "sky": fixed(WEATHER, "core"), "where": optional(FAR_SKY, 0.3)},
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
        verb("say", "", "říct řekn:e řekl"), verb("claim", "", "tvrdit tvrd:í tvrdil"),
        verb("write", "", "napsat napíš:e napsal")], "core"),
     "act": fixed(DELIBERATE, "core"),
     "who": Slot(lambda m: [np for np in SOMEBODY if np != m["teller"]]), "what": WHAT},
    ("{teller} {say.pf.past:teller}, že {who} {act.pf.fut} {what.acc}.",),
    ("{teller} {say.past} that {who} would {act.base} {what.det:act}.",
     "{teller} {say.past} {who} would {act.base} {what.det:act}."),
    COMMON, 6,
)  # fmt: skip

FRAMES = [
    DID_YOU,
    WHO_DID,
    WHY_NOT,
    WHEN_WILL,
    WHERE_IS,
    REQUEST,
    COULD_YOU,
    THINK_WEATHER,
    THINK_DONE,
    SAID,
]
