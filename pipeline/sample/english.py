"""The English that the sample needs: plurals, verb forms, articles, contractions."""

from __future__ import annotations

import re

PLURALS = {
    "child": "children", "knife": "knives", "scarf": "scarves", "sheep": "sheep", "fish": "fish",
    "series": "series", "man": "men", "woman": "women", "shelf": "shelves", "loaf": "loaves",
    "homework": "homework", "potato": "potatoes", "tomato": "tomatoes",
}  # fmt: skip

# base: third person, past, participle (gerund by rule)
IRREGULAR = {
    "be": "is was been", "have": "has had had", "do": "does did done", "go": "goes went gone",
    "buy": "buys bought bought", "get": "gets got got", "sell": "sells sold sold",
    "choose": "chooses chose chosen", "find": "finds found found", "lose": "loses lost lost",
    "make": "makes made made", "eat": "eats ate eaten", "drink": "drinks drank drunk",
    "write": "writes wrote written", "read": "reads read read", "send": "sends sent sent",
    "see": "sees saw seen", "shut": "shuts shut shut", "pay": "pays paid paid",
    "feed": "feeds fed fed", "take": "takes took taken", "win": "wins won won",
    "bring": "brings brought brought", "draw": "draws drew drawn", "cut": "cuts cut cut",
    "forget": "forgets forgot forgotten", "hang": "hangs hung hung", "meet": "meets met met",
    "run": "runs ran run", "sleep": "sleeps slept slept", "swim": "swims swam swum",
    "sing": "sings sang sung", "sit": "sits sat sat", "stand": "stands stood stood",
    "lie": "lies lay lain", "fly": "flies flew flown", "leave": "leaves left left",
    "come": "comes came come", "drive": "drives drove driven", "ride": "rides rode ridden",
    "give": "gives gave given", "lend": "lends lent lent", "show": "shows showed shown",
    "tell": "tells told told", "say": "says said said", "think": "thinks thought thought",
    "know": "knows knew known", "hear": "hears heard heard", "feel": "feels felt felt",
    "begin": "begins began begun", "spend": "spends spent spent", "set": "sets set set",
    "speak": "speaks spoke spoken", "keep": "keeps kept kept", "grow": "grows grew grown",
    "understand": "understands understood understood", "teach": "teaches taught taught",
    "mow": "mows mowed mown", "sweep": "sweeps swept swept", "hurt": "hurts hurt hurt",
    "put": "puts put put", "break": "breaks broke broken", "wear": "wears wore worn",
}  # fmt: skip
MODALS = {"would": "would", "can": "could", "must": "had to"}
DOUBLED = {"get", "shut", "win", "cut", "forget", "run", "swim", "sit", "set", "shop", "chat",
           "begin", "travel", "put", "stop", "jog", "plan", "hug", "pet", "grab"}  # fmt: skip


def plural(noun: str) -> str:
    """Plural of a noun or of the last word of a compound.

    >>> plural("washing machine"), plural("box"), plural("story"), plural("knife")
    ('washing machines', 'boxes', 'stories', 'knives')
    """
    head, _, last = noun.rpartition(" ")
    prefix = f"{head} " if head else ""
    if last in PLURALS:
        return prefix + PLURALS[last]
    if re.search(r"[^aeiou]y$", last):
        return prefix + last[:-1] + "ies"
    return prefix + last + ("es" if re.search(r"(s|x|ch|sh)$", last) else "s")


def verb(phrase: str, form: str) -> str:
    """Inflect the first word of a verb phrase; forms: base, s (third person), past, pp, ing.

    >>> verb("take a picture of", "past"), verb("shop", "ing"), verb("lie", "ing")
    ('took a picture of', 'shopping', 'lying')
    """
    word, space, rest = phrase.partition(" ")
    return _verb(word, form) + space + rest


def _verb(word: str, form: str) -> str:
    if form == "base":
        return word
    if word in MODALS:
        return word if form == "s" else MODALS[word]
    if form == "ing":
        if word in DOUBLED:
            return word + word[-1] + "ing"
        if word.endswith("ie"):
            return word[:-2] + "ying"
        silent = word.endswith("e") and not re.search(r"(ee|oe|ye)$", word) and len(word) > 2
        return (word[:-1] if silent else word) + "ing"
    if word in IRREGULAR:
        return IRREGULAR[word].split()[("s", "past", "pp").index(form)]
    if form == "s":
        if re.search(r"[^aeiou]y$", word):
            return word[:-1] + "ies"
        return word + ("es" if re.search(r"(s|x|z|ch|sh|o)$", word) else "s")
    if word in DOUBLED:
        return word + word[-1] + "ed"
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


SHORT = {"am": "'m", "are": "'re", "is": "'s", "will": "'ll"}
CONTRACTED = re.compile(r"\b(I|We|He|She|They|You|There) (am|are|is|will)\b", re.I)


def contract(sentence: str) -> str:
    """Contract a pronoun and the auxiliary behind it.

    >>> contract("I am going and there is a bus")
    "I'm going and there's a bus"
    """

    def shorten(match: re.Match[str]) -> str:
        if match[1].lower() == "there" and match[2] != "is":
            return match[0]
        return match[1] + SHORT[match[2]]

    return CONTRACTED.sub(shorten, sentence)


CONSONANT_SOUND = re.compile(r"(uni|use|eu|one\b|once)", re.I)  # though spelt with a vowel
SILENT_H = re.compile(r"(hour|hono|heir)", re.I)


def articles(sentence: str) -> str:
    """Turn "a" into "an" where the next word begins with a vowel sound.

    >>> articles("a old umbrella and a university")
    'an old umbrella and a university'
    """

    def choose(match: re.Match[str]) -> str:
        follows = match[2]
        spelt = follows[0].lower() in "aeiou" and not CONSONANT_SOUND.match(follows)
        vowel = spelt or SILENT_H.match(follows)
        return f"{match[1]}{'n' if vowel else ''} {follows}"

    return re.sub(r"\b([Aa]) (\w+)", choose, sentence)


NUMBERS = {
    2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine",
    10: "ten", 11: "eleven", 12: "twelve", 15: "fifteen", 18: "eighteen", 20: "twenty",
    30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty",
}  # fmt: skip
