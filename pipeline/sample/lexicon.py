"""The words of the sample: fillers for the slots of a sentence frame, read from data/*.tsv.

A filler knows its Czech forms and its English wordings; the first wording is the usual one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from pipeline.sample import czech
from pipeline.sample.czech import Agreement, Case, Gender


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun: Czech forms, English singulars (dominant first), groups that select it."""

    lemma: str
    gender: Gender
    forms: dict[tuple[Case, bool], str] = field(hash=False, compare=False, repr=False)
    english: tuple[str, ...]
    groups: frozenset[str]

    @property
    def mass(self) -> bool:
        """Without article and plural."""
        return "mass" in self.groups

    @property
    def plural_only(self) -> bool:
        """Plural in Czech, whatever it is in English."""
        return "plural" in self.groups


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective with its comparative, Czech and English, and the groups it describes."""

    lemma: str
    english: tuple[str, ...]
    comparative: str = ""
    english_comparative: tuple[str, ...] = ()
    groups: frozenset[str] = frozenset()

    def describes(self, noun: Noun) -> bool:
        """Whether the adjective goes with a noun."""
        if noun.mass and self.lemma in {"velký", "malý"}:
            return False
        return bool(self.groups & (noun.groups | {noun.lemma}))


@dataclass(frozen=True, slots=True)
class NP:
    """A noun in a number, perhaps with a possessive (můj, náš, jeho, její) or a numeral."""

    noun: Noun
    plural: bool = False
    possessive: str = ""
    count: int = 0

    @property
    def agreement(self) -> Agreement:
        """What Czech verbs and adjectives agree with (five and more: neuter singular)."""
        if self.count >= 5:
            return Agreement("n")
        return Agreement(self.noun.gender, self.plural or self.noun.plural_only)

    @property
    def english_plural(self) -> bool:
        """Number in English."""
        return self.plural or "enpl" in self.noun.groups


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun, dropped as a subject in Czech; oblique forms are clitics."""

    agreement: Agreement
    dative: str
    accusative: str
    english: tuple[str, str, str]  # I, me, my

    @property
    def english_plural(self) -> bool:
        """Number in English ("you" takes plural verbs)."""
        return self.agreement.plural or self.agreement.person == 2


@dataclass(frozen=True, slots=True)
class Action:
    """A verb in both aspects, with its English wordings and what it combines with.

    `complement` is a fixed Czech addition (hrát *fotbal*); `imperative` the forms for ty and vy.
    """

    key: str
    imperfective: czech.Verb | None
    perfective: czech.Verb | None
    reflexive: str
    english: tuple[str, ...]
    objects: frozenset[str] = frozenset()
    article: str = "the"
    places: frozenset[str] = frozenset()
    theme: str = ""
    imperative: tuple[str, ...] = ()
    complement: str = ""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A fixed phrase: named Czech forms and, under the same or other names, English wordings."""

    czech: tuple[tuple[str, str], ...]
    english: tuple[tuple[str, tuple[str, ...]], ...]
    groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, czech_form: str, english: str, groups: str = "", **forms: str) -> Phrase:
        """Build from a default form each; `cs_x` and `en_x` are further named forms."""
        cs = {"": czech_form} | {k[3:]: v for k, v in forms.items() if k.startswith("cs_")}
        en = {"": english} | {k[3:]: v for k, v in forms.items() if k.startswith("en_")}
        return cls(
            tuple(cs.items()),
            tuple((name, tuple(text.split("/"))) for name, text in en.items()),
            frozenset(groups.split()),
        )


Filler = NP | Pronoun | Action | Adjective | Phrase


def _rows(name: str) -> Iterator[list[str]]:
    text = resources.files("pipeline.sample").joinpath(f"data/{name}.tsv").read_text("utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            cells = line.split("\t")
            yield [("" if cell == "-" else cell) for cell in cells] + [""] * (10 - len(cells))


def _words(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("/")) if cell else ()


@cache
def nouns() -> tuple[Noun, ...]:
    """Every noun, in the order of the table."""
    found = []
    for lemma, paradigm, english, groups, exceptions, *_ in _rows("nouns"):
        irregular = dict(item.split("=") for item in exceptions.split())
        forms = czech.decline(lemma, paradigm, irregular)
        gender = czech.PARADIGMS[paradigm][0]
        found.append(Noun(lemma, gender, forms, _words(english), frozenset(groups.split())))
    return tuple(found)


@cache
def adjectives() -> tuple[Adjective, ...]:
    """Every attributive adjective."""
    return tuple(
        Adjective(lemma, _words(english), comparative, _words(more), frozenset(groups.split()))
        for lemma, english, comparative, more, groups, *_ in _rows("adjectives")
    )


def _verb(text: str) -> czech.Verb | None:
    return czech.Verb.parse(text) if text else None


@cache
def actions() -> tuple[Action, ...]:
    """Transitive verbs."""
    return tuple(
        Action(
            key=key,
            imperfective=_verb(imperfective),
            perfective=_verb(perfective),
            reflexive=reflexive,
            english=_words(english),
            objects=frozenset(objects.split()),
            article=article,
            places=frozenset(places.split()),
            theme=theme,
            imperative=_words(imperative),
        )
        for key, imperfective, perfective, reflexive, english, objects, article, places, theme,
        imperative in _rows("verbs")
    )  # fmt: skip


@cache
def activities() -> tuple[Action, ...]:
    """Intransitive verbs and verbs with a fixed complement."""
    return tuple(
        Action(
            key=key,
            imperfective=_verb(imperfective),
            perfective=None,
            reflexive=reflexive,
            english=_words(english),
            places=frozenset(places.split()),
            theme=theme,
            complement=complement,
        )
        for key, imperfective, reflexive, english, complement, places, theme, *_ in _rows(
            "activities"
        )
    )


@cache
def moves() -> tuple[Action, ...]:
    """Verbs of motion; the perfective of the first two is their future."""
    return tuple(
        Action(
            key=key,
            imperfective=_verb(imperfective),
            perfective=_verb(perfective),
            reflexive=reflexive,
            english=_words(english),
            objects=frozenset(means.split()),
            theme=theme,
        )
        for key, imperfective, perfective, reflexive, english, means, theme, *_ in _rows("moves")
    )


@cache
def places() -> tuple[Phrase, ...]:
    """Places, with the Czech and English of being there, going there (to) and leaving (from)."""
    return tuple(
        Phrase.of(at, en_at, groups, cs_to=to, en_to=en_to, **{"cs_from": away, "en_from": en_away})
        for at, to, en_at, en_to, groups, away, en_away, *_ in _rows("places")
    )


@cache
def times() -> tuple[Phrase, ...]:
    """Adverbials of time; spans also as a noun phrase (time)."""
    return tuple(
        Phrase.of(cs, en, groups, en_time=time) for cs, en, groups, time, *_ in _rows("times")
    )


def group(phrases: tuple[Phrase, ...], *names: str) -> list[Phrase]:
    """The phrases in any of the groups."""
    return [phrase for phrase in phrases if phrase.groups & set(names)]


@cache
def noun(lemma: str) -> Noun:
    """The noun with a lemma."""
    return next(entry for entry in nouns() if entry.lemma == lemma)


@cache
def things(*groups: str) -> list[NP]:
    """Noun phrases from groups or lemmas; what can be counted is plural one time in four."""
    wanted = set(groups)
    found: list[NP] = []
    for entry in nouns():
        if wanted & entry.groups or entry.lemma in wanted:
            found += [NP(entry)] * 3
            found.append(NP(entry, plural=not entry.groups & {"mass", "plural", "single"}))
    return found


POSSESSIVES = {"můj": ("my", "I"), "náš": ("our", "we"), "jeho": ("his", "he"), "její": ("her", "")}

I_MAN = Pronoun(Agreement("ma", person=1), "mi", "mě", ("I", "me", "my"))
I_WOMAN = Pronoun(Agreement("f", person=1), "mi", "mě", ("I", "me", "my"))
WE = Pronoun(Agreement("ma", True, 1), "nám", "nás", ("we", "us", "our"))
YOU = Pronoun(Agreement("ma", person=2), "ti", "tě", ("you", "you", "your"))
YOU_POLITE = Pronoun(Agreement("ma", True, 2), "vám", "vás", ("you", "you", "your"))
HE = Pronoun(Agreement("ma"), "mu", "ho", ("he", "him", "his"))
SHE = Pronoun(Agreement("f"), "jí", "ji", ("she", "her", "her"))
THEY = Pronoun(Agreement("ma", True), "jim", "je", ("they", "them", "their"))


@cache
def people(*pronouns: Pronoun) -> list[Filler]:
    """Persons: names, kin, roles, groups and the given pronouns, repeated by weight."""
    found: list[Filler] = []
    for entry in nouns():
        if "name" in entry.groups:
            found += [NP(entry)] * 5
        if "kin" in entry.groups:
            found += [NP(entry, possessive="můj")] * 2 + [NP(entry, possessive="náš")]
            found.append(NP(entry, possessive="jeho" if entry.gender == "f" else "její"))
        if "role" in entry.groups:
            found += [NP(entry)] * (4 if entry.plural_only else 2)
    for pronoun in pronouns:
        found += [pronoun] * 10
    return found
