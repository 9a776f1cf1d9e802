"""The Czech that the sample needs: declension, conjugation, agreement, clitics, prepositions.

Paradigms carry the names they have in Czech grammars (pán, hrad, žena …). What a rule does not
give, the lexicon states as an exception, so a wrong form is corrected in the data, not here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Case = Literal["nom", "gen", "dat", "acc", "loc", "ins"]
Gender = Literal["ma", "mi", "f", "n"]  # masculine animate and inanimate, feminine, neuter
CASES: tuple[Case, ...] = ("nom", "gen", "dat", "acc", "loc", "ins")

# Endings by case, singular then plural; "-" is the bare lemma, "=" the bare stem, "^" palatalises
# the end of the stem before it.
PARADIGMS: dict[str, tuple[Gender, str, str]] = {
    "pán": ("ma", "- a ovi a ovi em", "^i ů ům y ^ech y"),
    "muž": ("ma", "- e i e i em", "i ů ům e ích i"),
    "předseda": ("ma", "- y ovi u ovi ou", "ové ů ům y ^ech y"),
    "hrad": ("mi", "- u u - u em", "y ů ům y ^ech y"),
    "stroj": ("mi", "- e i - i em", "e ů ům e ích i"),
    "žena": ("f", "- y ^ě u ^ě ou", "y = ám y ách ami"),
    "růže": ("f", "- e i i i í", "e í ím e ích emi"),
    "píseň": ("f", "- e i - i í", "e í ím e ích emi"),
    "kost": ("f", "- i i - i í", "i í em i ech mi"),
    "město": ("n", "- a u - ^ě em", "a = ům a ^ech y"),
    "moře": ("n", "- e i - i em", "e í ím e ích i"),
    "stavení": ("n", "- í í - í ím", "í í ím í ích ími"),
    "kuře": ("n", "- ete eti - eti etem", "ata at atům ata atech aty"),
}
VOWEL_FINAL = {"předseda", "žena", "růže", "město", "moře", "stavení", "kuře"}
HARD = {"k": "c", "h": "z", "g": "z", "r": "ř"}


class Agreement(NamedTuple):
    """What a verb or an adjective takes over from a noun or a pronoun."""

    gender: Gender
    plural: bool = False
    person: int = 3


def palatalise(stem: str, ending: str) -> str:
    """Join a hard stem and `ě`, `i` or `ech` (matka → matce, kluk → kluci, parcích).

    >>> palatalise("matk", "ě"), palatalise("kluk", "i"), palatalise("škol", "ě")
    ('matce', 'kluci', 'škole')
    """
    if ending == "ech":
        if stem.endswith("ch"):
            return stem[:-2] + "ších"
        return stem[:-1] + HARD[stem[-1]] + "ích" if stem[-1] in "khg" else stem + "ech"
    if stem.endswith("ch"):
        return stem[:-2] + "š" + ("e" if ending == "ě" else ending)
    if stem[-1] in HARD:
        return stem[:-1] + HARD[stem[-1]] + ("e" if ending == "ě" else ending)
    return stem + ("e" if ending == "ě" and stem[-1] in "lszx" else ending)


def decline(lemma: str, paradigm: str, exceptions: dict[str, str]) -> dict[tuple[Case, bool], str]:
    """All forms of a noun by (case, plural); `exceptions` are `stem` and `case` or `case.pl`.

    >>> decline("kniha", "žena", {})["loc", False]
    'knize'
    """
    _, singular, plural = PARADIGMS[paradigm]
    stem = exceptions.get("stem") or (lemma[:-1] if paradigm in VOWEL_FINAL else lemma)
    soft_e = "ě" if lemma.endswith("ě") or (paradigm == "píseň" and stem[-1] in "ndt") else "e"
    forms: dict[tuple[Case, bool], str] = {}
    for is_plural, endings in ((False, singular), (True, plural)):
        for case, ending in zip(CASES, endings.split(), strict=True):
            key = f"{case}.pl" if is_plural else case
            forms[case, is_plural] = exceptions.get(key) or _inflect(
                lemma, stem, ending, paradigm, soft_e
            )
    return forms


def _inflect(lemma: str, stem: str, ending: str, paradigm: str, soft_e: str) -> str:
    if ending == "-":
        return lemma
    if ending == "=":  # matk- → matek, okn- → oken
        inserts = re.search(r"[^aeiouyáéíóúůýě](k|l|n)$", stem)
        return f"{stem[:-1]}e{stem[-1]}" if inserts else stem
    if ending.startswith("^"):
        if paradigm == "město" and ending == "^ě" and stem[-1] in "kghr":
            return stem + "u"
        if paradigm == "město" and ending == "^ech" and stem[-1] in "kg":
            return stem + "ách"
        return palatalise(stem, ending[1:])
    if ending.startswith("e") and paradigm in {"růže", "píseň", "kuře"}:
        return stem + soft_e + ending[1:]
    return stem + ending


ADJECTIVE: dict[Gender, tuple[str, str]] = {
    "ma": ("ý ého ému ého ém ým", "^í ých ým é ých ými"),
    "mi": ("ý ého ému ý ém ým", "é ých ým é ých ými"),
    "f": ("á é é ou é ou", "é ých ým é ých ými"),
    "n": ("é ého ému é ém ým", "á ých ým á ých ými"),
}
SOFT_ADJECTIVE: dict[Gender, tuple[str, str]] = {
    "ma": ("í ího ímu ího ím ím", "í ích ím í ích ími"),
    "mi": ("í ího ímu í ím ím", "í ích ím í ích ími"),
    "f": ("í í í í í í", "í ích ím í ích ími"),
    "n": ("í ího ímu í ím ím", "í ích ím í ích ími"),
}


def adjective(lemma: str, case: Case, agreement: Agreement) -> str:
    """The form of an adjective in -ý or -í.

    >>> adjective("velký", "nom", Agreement("ma", plural=True))
    'velcí'
    """
    table = ADJECTIVE if lemma.endswith("ý") else SOFT_ADJECTIVE
    ending = table[agreement.gender][agreement.plural].split()[CASES.index(case)]
    stem = lemma[:-1]
    if ending == "^í":
        for hard, soft in (("sk", "šť"), ("ck", "čť")):
            if stem.endswith(hard):
                return stem[:-2] + soft[0] + "tí"
        return palatalise(stem, "í")
    return stem + ending


PRESENT = {
    "á": "ám áš á áme áte ají",
    "í": "ím íš í íme íte í",
    "ejí": "ím íš í íme íte ejí",
    "ějí": "ím íš í íme íte ějí",
    "e": "u eš e eme ete ou",
    "j": "u eš e eme ete í",
}


@dataclass(frozen=True, slots=True)
class Verb:
    """One aspect of a Czech verb.

    `present` holds six forms (three persons singular, three plural; of a perfective verb they mean
    the future), `participle` the masculine l-participle and the stem of its other forms.
    """

    infinitive: str
    present: tuple[str, ...]
    participle: tuple[str, str]

    @classmethod
    def parse(cls, text: str) -> Verb:
        """Read `infinitive present participle`: present as stem:class or six forms with commas."""
        infinitive, present, participle = text.split()
        if ":" in present:
            stem, group = present.split(":")
            forms = tuple(stem + ending for ending in PRESENT[group].split())
        else:
            forms = tuple(present.split(","))
        masculine, _, stem = participle.partition("/")
        return cls(infinitive, forms, (masculine, stem or masculine))

    def finite(self, agreement: Agreement, *, negated: bool = False) -> str:
        """Present form (perfective: future) for a person and number."""
        form = self.present[agreement.person - 1 + 3 * agreement.plural]
        if not negated:
            return form
        return "není" if form == "je" else f"ne{form}"

    def past(self, agreement: Agreement, *, negated: bool = False) -> str:
        """L-participle for a gender and number; the auxiliary is a clitic of its own."""
        masculine, stem = self.participle
        if agreement.plural:
            form = stem + {"ma": "i", "mi": "y", "f": "y", "n": "a"}[agreement.gender]
        else:
            form = {"ma": masculine, "mi": masculine, "f": stem + "a", "n": stem + "o"}[
                agreement.gender
            ]
        return f"ne{form}" if negated else form


AUXILIARY = {(1, False): "jsem", (2, False): "jsi", (1, True): "jsme", (2, True): "jste"}
CONDITIONAL = {(1, False): "bych", (2, False): "bys", (1, True): "bychom", (2, True): "byste"}
CLITIC_ORDER = [
    {*AUXILIARY.values(), *CONDITIONAL.values(), "by"},
    {"se", "si"},
    {"mi", "ti", "mu", "jí", "nám", "vám", "jim"},
    {"mě", "tě", "ho", "ji", "nás", "vás", "je"},
]


def place_clitics(constituents: Sequence[str], clitics: Sequence[str]) -> str:
    """Put the clitics of a clause behind its first constituent, in their fixed order.

    >>> place_clitics(["včera", "půjčil", "kolo"], ["si", "jsem"])
    'včera jsem si půjčil kolo'
    """

    def rank(clitic: str) -> int:
        return next(i for i, group in enumerate(CLITIC_ORDER) if clitic in group)

    ordered = " ".join(sorted(clitics, key=rank))
    ordered = ordered.replace("jsi se", "ses").replace("jsi si", "sis")
    present = [text for text in constituents if text]
    return " ".join([*present[:1], *([ordered] if ordered else []), *present[1:]])


VOCALISED = {
    "s": re.compile(r"[szšž]|ps|vz|vš|čt", re.I),
    "z": re.compile(r"[szšž]|vz|vš|čt", re.I),
}


def prepositional(preposition: str, phrase: str) -> str:
    """A preposition before a phrase, vocalised where Czech asks for it.

    >>> prepositional("s", "sestrou"), prepositional("s", "bratrem"), prepositional("z", "Brna")
    ('se sestrou', 's bratrem', 'z Brna')
    """
    pattern = VOCALISED.get(preposition)
    if pattern and pattern.match(phrase):
        preposition += "e"
    return f"{preposition} {phrase}"


NUMERALS = {
    5: "pět", 6: "šest", 7: "sedm", 8: "osm", 9: "devět", 10: "deset", 11: "jedenáct",
    12: "dvanáct", 15: "patnáct", 18: "osmnáct", 20: "dvacet", 30: "třicet", 40: "čtyřicet",
    50: "padesát", 60: "šedesát", 70: "sedmdesát", 80: "osmdesát",
}  # fmt: skip


def numeral(number: int, gender: Gender) -> str:
    """Nominative (and accusative of what is not a person) of a numeral from two upwards."""
    if number == 2:
        return "dva" if gender in ("ma", "mi") else "dvě"
    return {3: "tři", 4: "čtyři"}.get(number) or NUMERALS[number]
