"""Frames about how things are: weather, places, qualities, health, liking, comparison, time."""

from __future__ import annotations

from functools import cache

from pipeline.sample import lexicon
from pipeline.sample.czech import numeral
from pipeline.sample.english import NUMBERS
from pipeline.sample.events import (
    BE,
    COMMON,
    HAVE,
    PAST_PEOPLE,
    PRESENT_PEOPLE,
    QUALITY,
    THIRD,
    fixed,
    optional,
    times,
    verb,
)
from pipeline.sample.frames import Frame, Options, Slot
from pipeline.sample.grammar import Meaning
from pipeline.sample.lexicon import I_MAN, NP, SHE, WE, Adjective, Phrase


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
            "it is very windy/a strong wind is blowing", "it was very windy/a strong wind was blowing",
            "it will be very windy/there will be a strong wind", "it would be very windy", "bad"),
    it_is("je zima/byla zima/bude zima", "cold/chilly", "bad"),
    it_is("je teplo/bylo teplo/bude teplo", "warm", "good"),
    it_is("je horko/bylo horko/bude horko", "hot", "good"),
    it_is("mrzne/mrzlo/bude mrznout", "freezing/freezing cold", "bad"),
    it_is("je zataženo/bylo zataženo/bude zataženo", "cloudy/overcast", "bad"),
    it_is("je mlha/byla mlha/bude mlha", "foggy/misty", "bad"),
    weather("je bouřka/byla bouřka/bude bouřka", "there is a thunderstorm/there is a storm",
            "there was a thunderstorm/there was a storm", "there will be a thunderstorm/there will be a storm",
            "there would be a thunderstorm/there would be a storm", "bad"),
]  # fmt: skip
GOOD = lexicon.group(tuple(WEATHER), "good")
BAD = lexicon.group(tuple(WEATHER), "bad")
FAR = lexicon.group(lexicon.places(), "far_weather")
SKY = fixed(WEATHER, "core")


def weather_frame(name: str, tense: str, when: Options) -> Frame:
    """What the weather is, was or will be, somewhere and at some time."""
    return Frame(
        f"weather_{name}", "weather",
        {"sky": SKY, "where": optional(FAR, 0.7, "argument"), "when": optional(when, 0.8)},
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
        "quality": Slot(lambda m: QUALITY.options(m) if not m["what"].count else [None], "detail"),
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
        ("hezký", "nice/pretty", "clothes photograph"),
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
        ("horký", "hot", "polévka káva čaj voda kakao"),
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
    Phrase.of("příliš", "too"),
    Phrase.of("docela", "quite/rather"),
]


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
    return [*DEGREES, None, None] if meaning["state"] in PREDICATES else [None]


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

MOODS = [
    Adjective(lemma, tuple(english.split("/")))
    for lemma, english in (
        ("unavený", "tired/exhausted"), ("nemocný", "ill/sick"), ("šťastný", "happy/glad"),
        ("smutný", "sad/unhappy"), ("veselý", "cheerful"), ("hladový", "hungry"),
        ("nervózní", "nervous"), ("naštvaný", "angry/annoyed"), ("spokojený", "satisfied/content"),
        ("zvědavý", "curious"), ("zdravý", "healthy"), ("překvapený", "surprised"),
    )
]  # fmt: skip
PERSON = {
    "state": fixed(MOODS, "core"),
    "degree": fixed([*DEGREES[::2], None, None], "detail"),
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
    ("{when} {be.impf.past} {who} {degree} {state.nom:who}.",
     "{who} {be.impf.past} {when} {degree} {state.nom:who}."),
    ("{who} {was} {degree} {state} {when}.", "{!when}, {who} {was} {degree} {state}."),
    COMMON, 6,
)  # fmt: skip


SINGLE = [np for np in THIRD if isinstance(np, NP) and not np.english_plural]


def part(czech: str, past: str, has: str, hurts: str) -> Phrase:
    """A part of the body: Czech nominative and past of bolet, English "has a …" and "his … hurts"."""
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
     "when": optional([Phrase.of("dnes", "today"), Phrase.of("zase", "again")], 0.5)},
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
    Phrase.of("angínu", "tonsillitis"), Phrase.of("alergii", "an allergy"),
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
    {"who": fixed([*THIRD, *[I_MAN, WE] * 12]), "what": fixed(lexicon.things("clothes", "visit", "goods")),
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

COMPARABLE = ("clothes", "text", "room", "pet", "big_animal")


def comparable(meaning: Meaning) -> Options:
    """What can be compared by an adjective: two things of one group."""
    first, how = meaning["what"], meaning["how"]
    assert isinstance(first, NP) and isinstance(how, Adjective)
    groups = [g for g in COMPARABLE if g in first.noun.groups and g in how.groups]
    return [np for np in lexicon.things(*groups) if np.noun != first.noun and not np.plural]


HOW = [a for a in lexicon.adjectives() if a.comparative and a.groups & set(COMPARABLE)]
COMPARES = Frame(
    "compares", "quality",
    {
        "how": fixed(HOW, "core"),
        "what": Slot(lambda m: [np for np in _described(m["how"])
                                if not np.plural and np.noun.groups & m["how"].groups & set(COMPARABLE)]),
        "other": Slot(comparable),
    },
    ("{what.nom} {be.impf.pres:what} {how.comp:what} než {other.nom}.",),
    ("{what.the} {is:what} {how.comp} than {other.the}.",),
    COMMON, 6,
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
     "act": fixed([verb("open", "otevírat otevír:á otevíral"), verb("close", "zavírat zavír:á zavíral")],
                  "core"),
     "hour": fixed(HOURS, "detail")},
    ("{what.nom} {act.impf.pres:what} {hour}.",),
    ("{what.the} {act.pres:what} {hour}.",),
    COMMON, 2,
)  # fmt: skip

POSES = [
    verb("sleep", "spát sp:í spal"), verb("lie", "ležet lež:í ležel"),
    verb("sit", "sedět sed:í seděl"), verb("play", "hrát hraj:j hrál", "", "si"),
]  # fmt: skip
PETS = lexicon.things("pet")
ANIMAL = {
    "act": fixed(POSES, "core"),
    "who": fixed(PETS),
    "quality": Slot(lambda m: QUALITY.options({"what": m["who"]}), "detail"),
    "where": fixed(lexicon.group(lexicon.places(), "pet_spot")),
}
ANIMAL_NOW = Frame(
    "animal_now", "animals", ANIMAL,
    ("{who.nom+quality} {act.impf.pres} {where}.",),
    ("{who.the+quality} {is} {act.ing} {where}.",),
    COMMON, 5,
)  # fmt: skip
ANIMAL_PAST = Frame(
    "animal_past", "animals", ANIMAL | {"when": optional(times("span"), 0.5)},
    ("{when} {who.nom+quality} {act.impf.past} {where}.",
     "{who.nom+quality} {when} {act.impf.past} {where}."),
    ("{who.the+quality} {was} {act.ing} {where} {when}.",
     "{who.the+quality} {act.past} {where} {when}."),
    COMMON, 4,
)  # fmt: skip

FRAMES = [
    *WEATHER_FRAMES, THERE_IS, WHERE_IT_IS, THING_IS, THING_WAS, THING_IS_NOT, PERSON_IS,
    PERSON_WAS, ACHE, ACHED, ILL, ILL_NOW, LIKES, DISLIKES, PLEASES, TASTED, COMPARES,
    PEOPLE_COMPARE, AGE, LEAVING, ARRIVING, OPENS, ANIMAL_NOW, ANIMAL_PAST,
]  # fmt: skip
