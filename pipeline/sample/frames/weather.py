"""Frames about the weather and what people do in it."""

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
from pipeline.sample.frames.travel import GO
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import Action, Phrase


def weather(czech: str, present: str, past: str, future: str, would: str, kind: str) -> Phrase:
    """A weather clause; `czech` holds three tenses, the others wordings between slashes.

    The Czech of more than one word comes in two parts, so that what else the clause holds can
    stand between them (bylo v Praze teplo); a single verb stands at the end (v Praze pršelo).
    """
    forms = {}
    for name, clause in zip(("pres", "past", "fut"), czech.split("/"), strict=True):
        verb, _, rest = clause.rpartition(" ") if clause.count(" ") < 2 else clause.partition(" ")
        forms[f"cs_{name}"], forms[f"cs_{name}_end"] = (verb, rest) if verb else ("", clause)
    return Phrase.of(
        "", present, kind, **forms, en_pres=present, en_past=past, en_fut=future,
        en_if=present.replace("is raining", "rains").replace("is snowing", "snows"),
        en_would=would,
    )  # fmt: skip


def it_is(czech: str, state: str, kind: str) -> Phrase:
    """A weather clause of the form "it is cold"."""
    words = state.split("/")

    def wordings(start: str) -> str:
        return "/".join(f"{start} {word}" for word in words)

    return weather(
        czech, wordings("it is"), wordings("it was"), wordings("it will be"),
        wordings("it would be"), kind,
    )  # fmt: skip


WEATHER = [
    weather("prší/pršelo/bude pršet", "it is raining", "it was raining/it rained",
            "it will rain/it is going to rain", "it would rain", "bad"),
    weather("sněží/sněžilo/bude sněžit", "it is snowing", "it was snowing/it snowed",
            "it will snow/it is going to snow", "it would snow", "bad"),
    weather("svítí slunce/svítilo slunce/bude svítit slunce", "the sun is shining/it is sunny",
            "the sun was shining/it was sunny", "the sun will shine/it will be sunny",
            "the sun would shine/it would be sunny", "good"),
    weather("fouká silný vítr/foukal silný vítr/bude foukat silný vítr",
            "it is very windy/a strong wind is blowing",
            "it was very windy/a strong wind was blowing",
            "it will be very windy/there will be a strong wind", "it would be very windy", "bad"),
    it_is("je zima/byla zima/bude zima", "cold/chilly", "bad"),
    it_is("je teplo/bylo teplo/bude teplo", "warm", "good"),
    it_is("je horko/bylo horko/bude horko", "hot", "good"),
    it_is("mrzne/mrzlo/bude mrznout", "freezing/freezing cold", "bad"),
    it_is("je zataženo/bylo zataženo/bude zataženo", "cloudy/overcast", "bad"),
    it_is("je mlha/byla mlha/bude mlha", "foggy/misty", "bad"),
    weather("je bouřka/byla bouřka/bude bouřka", "there is a thunderstorm/there is a storm",
            "there was a thunderstorm/there was a storm",
            "there will be a thunderstorm/there will be a storm",
            "there would be a thunderstorm/there would be a storm", "bad"),
]  # fmt: skip

GOOD = lexicon.group(tuple(WEATHER), "good")

BAD = lexicon.group(tuple(WEATHER), "bad")

FAR_SKY = lexicon.group(lexicon.places(), "far_weather")

SKY = fixed(WEATHER, "core")


def weather_frame(name: str, tense: str, when: Options) -> Frame:
    """What the weather is, was or will be, somewhere and at some time."""
    return Frame(
        f"weather_{name}", "weather",
        {"sky": SKY, "where": optional(FAR_SKY, 0.7, "argument"), "when": optional(when, 0.8)},
        (f"{{!when}} {{sky.{tense}}} {{where}} {{sky.{tense}_end}}.",
         f"{{!where}} {{sky.{tense}}} {{when}} {{sky.{tense}_end}}.",
         f"{{-when}} {{-where}} {{sky.{tense}}} {{sky.{tense}_end}}."),
        (f"{{sky.{tense}}} {{where}} {{when}}.", f"{{!when}}, {{sky.{tense}}} {{where}}."),
        COMMON, 4,
    )  # fmt: skip


TODAY = [Phrase.of("dnes", "today"), Phrase.of("teď", "now/right now")]

WEATHER_FRAMES = [
    weather_frame("now", "pres", TODAY),
    weather_frame("past", "past", times("past")),
    weather_frame("future", "fut", times("future")),
]

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

IF_WEATHER = Frame(
    "if", "weather",
    {"sky": fixed(GOOD, "core"), "when": fixed(times("future"), "detail"),
     "who": fixed(PRESENT_PEOPLE), "to": fixed(OUTSIDE)},
    ("Jestli {sky.fut} {when} {sky.fut_end}, {go.pf.fut} {who} {to.to}.",),
    ("If {sky.if} {when}, {who} will go {to.to}.", "{who} will go {to.to} if {sky.if} {when}."),
    COMMON | {"go": GO}, 4,
)  # fmt: skip

FRAMES = [*WEATHER_FRAMES, WHEN, STAYED, IF_WEATHER]
