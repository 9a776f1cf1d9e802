"""Check whether both sides have the same numbers, in digits or in English words."""

import math
import re

import numpy as np

from paraloom.models.languages import is_unspaced
from paraloom.models.scorers.base import check
from paraloom.models.text.tokens import PairText

_TO_19 = """zero one,first two three,third four,fourth five,fifth six,sixth seven,seventh
eight,eighth nine,ninth ten,tenth eleven,eleventh twelve,twelfth,dozen
thirteen,thirteenth fourteen,fourteenth fifteen,fifteenth sixteen,sixteenth
seventeen,seventeenth eighteen,eighteenth nineteen,nineteenth"""
_TENS = """ten twenty,twentieth thirty,thirtieth forty,fortieth fifty,fiftieth sixty,sixtieth
seventy,seventieth eighty,eightieth ninety,ninetieth hundred,hundredth"""
_WORDS = {word: float(i) for i, words in enumerate(_TO_19.split()) for word in words.split(",")}
_WORDS |= {w: 10.0 * i for i, words in enumerate(_TENS.split(), 1) for w in words.split(",")}
_WORDS |= {"thousand": 1e3, "million": 1e6, "billion": 1e9}
_KOREAN = {"백": 1e2, "천": 1e3, "만": 1e4, "억": 1e8, "조": 1e12}  # "5만" is 50,000
_DIGITS = re.compile(
    r"(\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d{3}){2,}|\d+)(?:[.,](\d+))?"
    r"(?:%|([백천만억조]*)([^\x00-`{-\x7f\d백천만억조]*))"  # "5kg" and "5마리" are 5
)
_SPLIT = re.compile(r"(?<=\d) (,) (?=\d{3}\b)|(?<=\d) (\.) (?=\d)")  # as in "1 , 000", "3 . 5"
_BETWEEN = re.compile(r"[-–:/ ]")  # as in twenty-five, 1990-95, 8:30


@check("both sides have the same numbers", "numbers differ", version=4)
def same_numbers(pairs: PairText) -> np.ndarray:
    """Return 1 if both sides have the same set of numbers, else 0: float32 [n]. "two" is 2, "1,000"
    and "one thousand" are 1000, "3,5" is 3.5, and "third" and "3rd" are 3. The numbers 0 and 1 and
    the word "second" are ignored: paraphrases may contain "no", "a" and "moment" instead."""
    words, unspaced = pairs.vocabulary.to_pylist(), is_unspaced(pairs.language)
    numeric = np.array([word[0].isdigit() or len(_numbers(word)) > 2 for word in words], bool)
    sides = (pairs.reference, pairs.translation)
    same = np.ones(len(pairs), np.float32)
    for row in np.unique(np.concatenate([side.rows[numeric[side.ids]] for side in sides])).tolist():
        spans = (side.ids[slice(*side.offsets[row : row + 2])].tolist() for side in sides)
        texts = [" ".join(words[i] for i in span) for span in spans]
        if unspaced:
            texts = [_SPLIT.sub(r"\1\2", text) for text in texts]
        first, second = map(_numbers, texts)
        same[row] = first == second
    return same


def _numbers(text: str) -> set[float]:
    """Return 0, 1 and the numbers in a text. "two hundred five" is one number, "2 5" are two."""
    numbers, thousands, rest = {0.0, 1.0}, 0.0, 0.0  # thousands and rest of the current number
    for word in _BETWEEN.split(text):
        value = _number(word) or 0.0
        fits = value and (rest % 100 == 0 or (rest % 10 == 0 and value < 10))
        if word.removesuffix("s") in ("dozen", "hundred"):
            rest = (rest or 1) * value
        elif value >= 1000 and not word[0].isdigit():
            thousands, rest = thousands + (rest or 1) * value, 0.0
        elif fits and not word[0].isdigit():
            rest += value
        else:
            numbers.add(thousands + rest)
            thousands, rest = 0.0, value
    return {*numbers, thousands + rest}


def _number(word: str) -> float | None:
    digits = _DIGITS.fullmatch(word)
    if digits and not any(map(str.isnumeric, digits[4] or "")):  # "5½" and "5万" are not 5
        number = float(f"{re.sub('[.,]', '', digits[1])}.{digits[2] or 0}")
        return number * math.prod(_KOREAN[unit] for unit in digits[3] or "")
    return _WORDS.get(word, _WORDS.get(word.removesuffix("s")))
