"""From a meaning (a frame and what fills its slots) to a Czech and an English sentence.

A template is a sentence with slots in braces:

    {who}                     the filler in its default form
    {what.acc}  {act.pf.past} a form of it, by name
    {what.acc+quality}        with the adjective in another slot
    {act.pres:what}           in agreement with another slot than `who`
    {what.det:act}            with the article that the action asks for (det0: imperfective)
    {!when}  {-when}          the slot must be filled / must be empty, else the template is not used

`~` ties words into one constituent, which matters in Czech: the clitics of a clause (auxiliary,
reflexive, dative, accusative) stand behind its first constituent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar, cast

from pipeline.sample import english
from pipeline.sample.czech import (
    AUXILIARY,
    CASES,
    CONDITIONAL,
    Agreement,
    Case,
    adjective,
    numeral,
    place_clitics,
    prepositional,
)
from pipeline.sample.lexicon import NP, POSSESSIVES, Action, Adjective, Filler, Phrase, Pronoun

T = TypeVar("T")
Meaning = Mapping[str, Filler | None]
TOKEN = re.compile(r"\{([!-]?)(\w+)((?:\.\w+)*)(?:\+(\w+))?(?::(\w+))?\}")
MY = {  # by gender; nominative … instrumental
    "můj": {
        "ma": "můj mého mému mého mém mým", "mi": "můj mého mému můj mém mým",
        "f": "moje mé mé moji mé mou", "n": "moje mého mému moje mém mým",
        "pl.ma": "moji mých mým mé mých mými", "pl.f": "moje mých mým moje mých mými",
    },
    "náš": {
        "ma": "náš našeho našemu našeho našem naším", "mi": "náš našeho našemu náš našem naším",
        "f": "naše naší naší naši naší naší", "n": "naše našeho našemu naše našem naším",
        "pl.ma": "naši našich našim naše našich našimi",
        "pl.f": "naše našich našim naše našich našimi",
    },
}  # fmt: skip


SHORT = {"ma": ("", "i"), "mi": ("", "y"), "f": ("a", "y"), "n": ("o", "a")}


class Unusable(Exception):  # noqa: N818 (no error: the next template is tried)
    """A template asks for what this meaning does not have."""


# Their perfective takes all there is: vypil víno is "drank the wine".
CONSUMING = {"eat", "drink"}


class Wording:
    """Chooses among wordings. Plain: always the first; else the first half of the time."""

    def __init__(self, random: Random | None = None) -> None:
        self.random = random

    def choose(self, options: Sequence[str]) -> str:
        """One of the options, the first of which is the usual one."""
        if self.random is None or len(options) == 1 or self.random.random() < 0.5:
            return options[0]
        return self.random.choice(options[1:])


PLAIN = Wording()


# --- Czech ---------------------------------------------------------------------------------------


def render_czech(template: str, meaning: Meaning) -> str:
    """Fill a Czech template.

    Raises:
        Unusable: a slot that must be filled is empty, or a form does not exist.
    """
    clauses = [_czech_clause(clause, meaning) for clause in re.split(r"(?<=,)\s+", template)]
    return _finish(" ".join(clauses))


def _czech_clause(clause: str, meaning: Meaning) -> str:
    constituents: list[str] = []
    clitics: list[str] = []

    def fill(match: re.Match[str]) -> str:
        text, own = _czech_token(match, meaning)
        clitics.extend(own)
        return text

    mark = clause[-1] if clause[-1] in ".,?" else ""
    for chunk in clause.removesuffix(mark).split():
        constituents += TOKEN.sub(fill, chunk).replace("~", " ").split("|")
    return place_clitics([part.strip() for part in constituents], clitics) + mark


def _czech_token(match: re.Match[str], meaning: Meaning) -> tuple[str, list[str]]:
    filler, features, extra, agree = _resolve(match, meaning)
    if filler is None:
        return "", []
    if isinstance(filler, Phrase):
        return _form(dict(filler.czech), features, match), []
    if isinstance(filler, Adjective):
        target = _agreement(agree or meaning.get("what"))
        if features == ["comp"]:
            return adjective(filler.comparative, "nom", target), []
        if features == ["short"]:  # rád, ráda, rádi, rády
            return filler.lemma + SHORT[target.gender][target.plural], []
        return adjective(filler.lemma, _case(features), target), []
    if isinstance(filler, Pronoun):
        case = _case(features)
        if case == "nom":
            return "", []
        if case not in {"dat", "acc"}:
            raise Unusable(match[0])
        return "", [filler.dative if case == "dat" else filler.accusative]
    if isinstance(filler, NP):
        preposition = next((f for f in features if f not in CASES), "")
        text = czech_np(filler, _case(features), extra)
        return (prepositional(preposition, text) if preposition else text), []
    return _czech_verb(filler, features, _agreement(agree or meaning.get("who")), match[0])


def czech_np(np: NP, case: Case, quality: Adjective | None = None) -> str:
    """A noun phrase in a case: numeral, possessive, adjective, noun."""
    noun, plural = np.noun, np.plural or np.noun.plural_only
    agreement = Agreement(noun.gender, plural)
    words = []
    if np.count:
        words.append(numeral(np.count, noun.gender))
        if np.count >= 5:
            case = "gen"
    if np.possessive in MY:
        table = MY[np.possessive]
        key = noun.gender if not plural else f"pl.{'ma' if noun.gender == 'ma' else 'f'}"
        words.append(table[key].split()[CASES.index(case)])
    elif np.possessive == "její":
        words.append(adjective("její", case, agreement))
    elif np.possessive:
        words.append(np.possessive)
    if quality:
        words.append(adjective(quality.lemma, case, agreement))
    words.append(noun.forms[case, plural])
    return " ".join(words)


def _czech_verb(
    action: Action, features: list[str], agreement: Agreement, token: str
) -> tuple[str, list[str]]:
    if features == ["comp"]:
        return action.complement, []
    verb = action.perfective if "pf" in features else action.imperfective
    if verb is None:
        raise Unusable(token)
    negated = "neg" in features
    clitics = [action.reflexive] if action.reflexive else []
    person = (agreement.person, agreement.plural)
    if "past" in features:
        text = verb.past(agreement, negated=negated)
        clitics += [AUXILIARY[person]] if person in AUXILIARY else []
    elif "cond" in features:
        text = verb.past(agreement, negated=negated)
        clitics.append(CONDITIONAL.get(person, "by"))
    elif "inf" in features:
        text = f"ne{verb.infinitive}" if negated else verb.infinitive
    elif "ty" in features or "vy" in features:
        if not action.imperative:
            raise Unusable(token)
        text = action.imperative["vy" in features]
    else:
        text = verb.finite(agreement, negated=negated)
    complement = action.complement if "bare" not in features else ""
    return f"{text}|{complement}" if complement else text, clitics


# --- English -------------------------------------------------------------------------------------


def render_english(template: str, meaning: Meaning, wording: Wording = PLAIN) -> str:
    """Fill an English template.

    Raises:
        Unusable: as `render_czech`.
    """
    text = TOKEN.sub(lambda match: _english_token(match, meaning, wording), template)
    sentence = english.articles(_finish(text))
    return wording.choose([sentence, english.contract(sentence)])


def _english_token(match: re.Match[str], meaning: Meaning, wording: Wording) -> str:
    if match[2] in AUXILIARIES:
        return _auxiliary(match[2], meaning[match[5] or "who"], wording)
    filler, features, extra, agree = _resolve(match, meaning)
    feature = features[0] if features else ""
    if filler is None:
        return ""
    if isinstance(filler, Phrase):
        return wording.choose(_form(dict(filler.english), features, match))
    if isinstance(filler, Adjective):
        return wording.choose(filler.english_comparative if feature == "comp" else filler.english)
    if isinstance(filler, Pronoun):
        forms_of = {"": 0, "pron": 0, "obj": 1, "poss": 2}
        if feature not in forms_of:
            raise Unusable(match[0])
        return filler.english[forms_of[feature]]
    if isinstance(filler, NP):
        some = feature != "det0"
        if feature in {"det", "det0"}:
            whole = some and filler.noun.mass and cast(Action, agree).key in CONSUMING
            feature = "the" if whole else cast(Action, agree).article
        return english_np(filler, feature, extra, wording, some=some)
    if feature == "pres":
        subject = agree or meaning["who"]
        feature = "s" if _third_singular(subject) else "base"
    if feature.endswith("0"):  # the usual verb only: "was got", "stopped having tea" are no English
        return english.verb(filler.english[0], feature[:-1])
    return english.verb(wording.choose(filler.english), feature or "base")


def english_np(
    np: NP, feature: str, quality: Adjective | None, wording: Wording, *, some: bool = True
) -> str:
    """A noun phrase; features: a, the, bare, poss (genitive), pron, np (no pronoun).

    Without an article to take, "a" may become "some" unless `some` is false.
    """
    noun = np.noun
    if feature == "pron":
        if np.english_plural:
            return "they"
        return {"ma": "he", "f": "she"}.get(noun.gender, "it") if _is_person(np) else "it"
    word = wording.choose(noun.english)
    if np.plural and "enpl" not in noun.groups:
        word = english.plural(word)
    if quality:
        word = f"{wording.choose(quality.english)} {word}"
    if np.count:
        return f"{english.NUMBERS[np.count]} {word}"
    if np.possessive:
        word = f"{POSSESSIVES[np.possessive][0]} {word}"
    elif feature == "bare" or noun.groups & {"name", "city"}:
        pass
    elif "meal" in noun.groups and not quality:
        pass  # have lunch
    elif feature == "a" and "always_the" not in noun.groups:
        if noun.mass or np.english_plural:
            word = wording.choose([word, f"some {word}"]) if some else word
        else:
            word = f"a {word}"
    else:
        word = f"the {word}"
    if feature == "poss":
        word += "'" if word.endswith("s") and np.english_plural else "'s"
        word = word.replace("children'", "children's") if word.endswith("children'") else word
    return word


# am/is/are and the like, by (I, he, they)
AUXILIARIES = {
    "is": [("am", "is", "are")],
    "was": [("was", "was", "were")],
    "has": [("have", "has", "have")],
    "do": [("do", "does", "do")],
    "isnt": [("am not", "isn't", "aren't"), ("am not", "is not", "are not")],
    "wasnt": [("wasn't", "wasn't", "weren't"), ("was not", "was not", "were not")],
    "hasnt": [("haven't", "hasn't", "haven't"), ("have not", "has not", "have not")],
    "dont": [("don't", "doesn't", "don't"), ("do not", "does not", "do not")],
    "didnt": [("didn't", "didn't", "didn't"), ("did not", "did not", "did not")],
    "wont": [("won't", "won't", "won't"), ("will not", "will not", "will not")],
}


def _auxiliary(name: str, subject: Filler | None, wording: Wording) -> str:
    person = 1 if _third_singular(subject) else 2
    if isinstance(subject, Pronoun) and subject.english[0] == "I":
        person = 0
    return wording.choose([forms[person] for forms in AUXILIARIES[name]])


# --- both ----------------------------------------------------------------------------------------


def _resolve(
    match: re.Match[str], meaning: Meaning
) -> tuple[Filler | None, list[str], Adjective | None, Filler | None]:
    mark, slot, features, extra, agree = match.groups()
    filler = meaning[slot]
    if (mark == "!" and filler is None) or (mark == "-" and filler is not None):
        raise Unusable(match[0])
    quality = meaning.get(extra) if extra else None
    return (
        filler,
        [feature for feature in features.split(".") if feature],
        cast(Adjective | None, quality),
        meaning[agree] if agree else None,
    )


def _agreement(filler: Filler | None) -> Agreement:
    if isinstance(filler, NP | Pronoun):
        return filler.agreement
    return Agreement("ma")  # who? (kdo) takes the masculine


def _third_singular(filler: Filler | None) -> bool:
    if isinstance(filler, Pronoun):
        return filler.agreement.person == 3 and not filler.english_plural
    return not (isinstance(filler, NP) and filler.english_plural)


def _is_person(np: NP) -> bool:
    return bool(np.noun.groups & {"male", "female", "people"})


def _case(features: list[str]) -> Case:
    return cast(Case, next((feature for feature in features if feature in CASES), "nom"))


def _form(forms: dict[str, T], features: list[str], match: re.Match[str]) -> T:
    try:
        return forms[".".join(features)]
    except KeyError:
        raise Unusable(match[0]) from None


def _finish(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s+([.,?!])", r"\1", text)
    return text[:1].upper() + text[1:]
