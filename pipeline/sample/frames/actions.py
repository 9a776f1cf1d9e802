"""Frames about what people do to things: done, not done, planned, wanted, begun."""

from __future__ import annotations

from pipeline.sample.frame import Frame, Slot
from pipeline.sample.frames.shared import (
    COMMON,
    DELIBERATE,
    IMPERFECTIVE,
    PAST_PEOPLE,
    PERFECTIVE,
    PRESENT_PEOPLE,
    fixed,
    optional,
    times,
    transitive,
    usual_objects,
    verb,
)

BRIEF = {"lose", "win", "lose_game", "open", "close", "sign", "order", "borrow"}
ONGOING = [act for act in IMPERFECTIVE if act.key not in BRIEF]
NOT_BEGUN = {"buy", "sell", "send", "hang", "choose", "photograph"}
HABITS = [act for act in IMPERFECTIVE if act.key in {
    "repair", "wash", "launder", "clean", "cook", "bake", "eat", "drink", "prepare", "write",
    "read", "watch", "water", "feed", "sweep", "mow", "draw", "send", "check", "photograph",
}]  # fmt: skip

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
        "{who} {is} {act.ing} {what.det0+quality:act} {where} {when}.",
        "{!when}, {who} {is} {act.ing} {what.det0+quality:act} {where}.",
    ),
    COMMON, 10,
)  # fmt: skip

USUAL = {"what": Slot(usual_objects), "quality": fixed([None])}

HABIT = Frame(
    "habit", "action",
    transitive(HABITS, PRESENT_PEOPLE, fixed(times("habit"), "detail"))
    | USUAL,
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
    transitive(HABITS, PRESENT_PEOPLE, fixed(times("mid"), "detail")) | USUAL,
    ("{who} {when} {act.impf.pres} {what.acc} {where}.",),
    ("{who} {when} {act.pres} {what.det0:act} {where}.",),
    COMMON, 5,
)  # fmt: skip

NEVER = Frame(
    "never", "action",
    transitive(HABITS, PRESENT_PEOPLE, fixed([None])) | USUAL,
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
]

HAVING_TO = [
    verb("have to/need to", "muset mus:í musel"),
    verb("want to", "chtít chci,chceš,chce,chceme,chcete,chtějí chtěl"),
]
MANAGING = [
    verb("forget to", "", "zapomenout zapomen:e zapomněl"),
    verb("manage to", "", "stihnout stihn:e stihl"),
    verb("decide to", "", "rozhodnout rozhodn:e rozhodl", "se"),
    verb("try to", "", "zkusit zkus:í zkusil"),
    verb("promise to", "", "slíbit slíb:í slíbil"),
]

MODAL = Frame(
    "modal", "action",
    {"modal": fixed(MODALS, "core")}
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
    {"modal": fixed(HAVING_TO, "core")}
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
    {"modal": fixed(MANAGING, "core")}
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
    | transitive([a for a in ONGOING if a.key not in NOT_BEGUN],
                 PAST_PEOPLE, optional(times("past"), 0.4))
    | {"where": fixed([None]), "quality": fixed([None])},
    ("{who} {when} {modal.pf.past} {act.impf.inf} {what.acc}.",),
    (
        "{who} {modal.past} {act.ing0} {what.the} {when}.",
        "{!when}, {who} {modal.past} {act.ing0} {what.the}.",
    ),
    COMMON, 4,
)  # fmt: skip

FRAMES = [
    DONE,
    NOT_DONE,
    NOT_YET,
    ONGOING_NOW,
    HABIT,
    OFTEN,
    NEVER,
    PLAN,
    MODAL,
    SHOULD,
    HAD_TO,
    MANAGED,
    STARTED,
]
