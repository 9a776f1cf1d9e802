"""What the checks of meaning pass and reject."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from paraloom.models.scorers import PairScorer

ANTONYMS = {"old": {"young", "new"}, "young": {"old"}, "new": {"old"}, "buy": {"sell"}}
ANTONYMS |= {"sell": {"buy"}, "ever": {"never"}, "never": {"ever"}}


def passes(check: str, first: str, second: str, **resources: Any) -> bool:
    """Whether a pair passes, whichever side is the reference."""
    scorer = PairScorer([check], **resources)
    found = scorer.score(pa.array([first, second, first]), pa.array([second, first, first]))[check]
    assert found[0] == found[1] in (0, 1)
    assert found[2] == 1
    return bool(found[0])


NUMBERS = [
    ("Two dogs", "2 dogs", True),
    ("Two dogs", "Three dogs", False),
    ("1,000 people", "1000 people", True),
    ("one thousand people", "1,000 people", True),
    ("a dozen eggs", "12 eggs", True),
    ("two hundred five", "205", True),
    ("two million three hundred thousand", "2,300,000", True),
    ("2.5 million", "2,500,000", True),
    ("twenty-five years", "25 years", True),
    ("a two-year-old", "a 2-year-old", True),
    ("hundreds of eggs", "eggs", False),
    ("from 1990-95", "from 1990 to 95", True),
    ("at seven thirty", "at 7:30", True),
    ("rows 2 5", "rows 5 2", True),
    ("rows 2 5", "row 25", False),
    ("the third of May", "the 3rd of May", True),
    ("the twelfth and the twentieth floor", "the 12th and the 20th floor", True),
    ("her hundredth day in the twenty-first year", "her 100th day in the 21st year", True),
    ("the twelfth floor", "the 13th floor", False),
    ("a dog", "one dog", True),
    ("the 1990s", "the 1980s", False),
    ("5 to 5", "at 5", True),
    ("", "", True),
]
NUMBERS_ELSEWHERE = [
    ("cs", "Stojí 3,5 Kč.", "Stojí 4,5 Kč.", False),
    ("de", "1.000.000,50", "1000000,5", True),
    ("ja", "3,999円", "3999円", True),
    ("ja", "3.5円", "5.3円", False),
    ("zh", "1,000元", "1,000,000元", False),
    ("th", "2, 3", "2 และ 3", True),
    ("ko", "개 3마리", "개 4마리", False),
    ("ko", "개 3마리", "개 3 마리", True),
    ("ko", "5만 명", "5 명", False),
    ("ko", "5만 명", "3만 명", False),
    ("ko", "5천만 명", "50,000,000명", True),
    ("en", "He ran 5km", "He ran 10km", False),
    ("en", "He ran 5km at 2pm", "He ran 5 km at 2 pm", True),
    ("fr", "la 3ème place", "la 5ème place", False),
    ("zh", "重5kg", "重10kg", False),
    ("bn", "৫টি বই", "৫ টি বই", True),
    ("en", "add 5½ cups", "add 5 cups", False),
]
NAMES = [
    ("I met John in Prague.", "I met Mary in Prague.", False),
    ("I met John.", "John met me.", True),
    ("The dog met Greece’s king.", "The king of Greece met the dog.", True),
    ("Dogs run.", "Cats run.", True),  # no name: begins the sentence
    ("He ran. Dogs ran.", "He ran. Cats ran.", True),
    ("He said: “Go home”", "He said, go home", True),
    ("A man in Zürich, Österreich", "A man in Zürich", False),
    ("The Official Journal of the European Union", "the Union's official journal", True),
    ("COME TO THE HOUSE", "come home", True),
    ("I am I", "he is he", True),
]
NEGATION = [
    ("He can't go.", "He goes.", False),
    ("He can’t go.", "He goes.", False),
    ("He can’t go.", "He cannot go.", True),
    ("He didn't go.", "He never went.", True),
    ("No dog", "not", True),
    ("No 7 is open", "7 is open", True),
    ("It is not only a dog", "It is a dog", True),
    ("It is not a dog, only a cat", "It is a cat", False),
    ("not", "only this", False),
]


@pytest.mark.parametrize(("language", "first", "second", "expected"), NUMBERS_ELSEWHERE)
def test_numbers_of_other_languages(language: str, first: str, second: str, expected: bool) -> None:
    assert passes("same_numbers", first, second, language=language) is expected


@pytest.mark.parametrize(
    ("check", "rows"),
    [("same_numbers", NUMBERS), ("same_names", NAMES), ("same_negation", NEGATION)],
)
def test_what_passes(check: str, rows: list[tuple[str, str, bool]]) -> None:
    for first, second, same in rows:
        assert passes(check, first, second) == same, (first, second)


_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


@given(st.integers(2, 9), st.integers(2, 9), st.integers(2, 9), st.integers(2, 12))
@settings(max_examples=30)
def test_any_number_in_words(millions: int, hundreds: int, tens: int, units: int) -> None:
    words = f"{_UNITS[units]} million {_UNITS[hundreds]} hundred thousand {_TENS[tens]}"
    assert passes("same_numbers", f"{words} dogs", f"{units:d},{hundreds}00,0{tens}0 dogs")
    assert not passes("same_numbers", f"{words} dogs", f"{units:d},{hundreds}00,0{tens}{units} d")


@pytest.mark.parametrize(
    ("first", "second", "none"),
    [
        ("An old man", "A young man", False),
        ("An old man", "A man", True),
        ("Old houses, young men", "Young men, old houses", True),
        ("Old houses, young men", "Young men, new houses", False),
        ("He buys it", "He sold it", False),
        ("He does not ever go", "He never goes", True),
        ("He buys it. She sells it", "She sells it", True),
    ],
)
def test_antonyms(first: str, second: str, none: bool) -> None:
    assert passes("no_antonyms", first, second, wordnet=ANTONYMS) == none
    # other rows have other words
    rows = [("a", "b"), (first, second), ("old", "b"), ("c", "young")]
    scorer = PairScorer(["no_antonyms"], wordnet=ANTONYMS)
    found = scorer.score(*(pa.array(side) for side in zip(*rows, strict=True)))["no_antonyms"]
    assert found.tolist() == [1, none, 1, 1]


VOCAB = spacy.blank("en").vocab
PARSES = {  # head and relation of each word
    "dogs bite men": [(1, "nsubj"), (1, "ROOT"), (1, "dobj")],
    "men bite dogs": [(1, "nsubj"), (1, "ROOT"), (1, "dobj")],
    "men see dogs": [(1, "nsubj"), (1, "ROOT"), (1, "dobj")],
    "dogs sleep": [(1, "nsubj"), (1, "ROOT")],
    "dogs are bitten by men": [
        *((2, "nsubjpass"), (2, "auxpass"), (2, "ROOT")),
        *((2, "agent"), (3, "pobj")),
    ],
    "he sees her": [(1, "nsubj"), (1, "ROOT"), (1, "dobj")],
    "she sees him": [(1, "nsubj"), (1, "ROOT"), (1, "dobj")],
}


def parsed(text: str) -> Doc:
    heads, relations = zip(*PARSES[text], strict=True)
    return Doc(VOCAB, words=text.split(), heads=list(heads), deps=list(relations))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("dogs bite men", "men bite dogs", False),
        ("dogs bite men", "dogs are bitten by men", False),
        ("men bite dogs", "dogs are bitten by men", True),
        ("dogs bite men", "men see dogs", True),
        ("dogs bite men", "dogs sleep", True),
        ("he sees her", "she sees him", False),
    ],
)
def test_roles(first: str, second: str, same: bool) -> None:
    pipeline = SimpleNamespace(pipe=lambda texts: map(parsed, texts))
    assert passes("same_roles", first, second, spacy=SimpleNamespace(pipeline=pipeline)) == same
