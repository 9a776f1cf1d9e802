"""Changed sentences, on hand-made parses; a real pipeline of spaCy is not needed."""

import random

import pytest

from paraloom.models.text.changes import CHANGES, Sentence, antonyms_by_tag, words

spacy = pytest.importorskip("spacy", reason="spaCy is not installed")

VOCAB = spacy.blank("en").vocab
ANTONYMS = antonyms_by_tag(
    {"man": frozenset({"woman", "civilian"}), "boy": frozenset({"girl"})},
    {"old": frozenset({"new", "young"}), "young": frozenset({"old", "aged"}),
     "happy": frozenset({"unhappy", "same"}), "other": frozenset({"same"})},
    {"woman": 5, "young": 3, "old": 2, "new": 1, "unhappy": 1, "girl": 1, "girls": 1, "women": 1,
     "same": 9},
)  # fmt: skip


def parsed(text: str):  # type: ignore[no-untyped-def]
    """A parse written as `word/TAG/relation/head`, with heads as positions; no space before `_`."""
    fields = [token.split("/") for token in text.split()]
    follows = [not nxt[0].startswith("_") for nxt in [*fields[1:], ["."]]]
    follows[-1] = False
    poses = {"NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "PRP": "PRON", ".": "PUNCT", ",": "PUNCT"}
    auxiliary = {"aux", "auxpass"}
    return spacy.tokens.Doc(
        VOCAB,
        words=[f[0].removeprefix("_") for f in fields],
        spaces=follows,
        tags=[f[1] for f in fields],
        pos=[
            "AUX" if f[2] in auxiliary or f[0] in ("is", "was") else poses.get(f[1], "X")
            for f in fields
        ],
        deps=[f[2] for f in fields],
        heads=[int(f[3]) for f in fields],
    )


TWO = "Two/CD/nummod/1 dogs/NNS/nsubj/2 run/VBP/ROOT/2 _././punct/2"
ONE = "A/DT/det/2 two/CD/nummod/2 year/NN/ROOT/2"
OLD = "An/DT/det/2 old/JJ/amod/2 man/NN/nsubj/4 is/VBZ/aux/4 running/VBG/ROOT/4 _././punct/4"
NOT = "He/PRP/nsubj/3 is/VBZ/aux/3 not/RB/neg/3 running/VBG/ROOT/3 now/RB/advmod/3"
CANT = "He/PRP/nsubj/3 ca/MD/aux/3 _n't/RB/neg/3 run/VB/ROOT/3 now/RB/advmod/3"
BITES = (
    "A/DT/det/1 dog/NN/nsubj/4 in/IN/prep/1 Rome/NNP/pobj/2 bites/VBZ/ROOT/4 a/DT/det/6 "
    "man/NN/dobj/4 today/NN/npadvmod/4 _././punct/4"
)
GROUP = "A/DT/det/1 band/NN/nsubj/3 are/VBP/aux/3 watching/VBG/ROOT/3 a/DT/det/5 man/NN/dobj/3"
NAMES = "Anna/NNP/nsubj/1 saw/VBD/ROOT/1 Bob/NNP/dobj/1 _././punct/1"


def changed(kind: str, parse: str, anchor: str, seed: int = 0) -> str | None:
    change, _ = CHANGES[kind]
    return change(Sentence(parsed(parse), words(anchor), ANTONYMS, random.Random(seed)))


@pytest.mark.parametrize(
    ("kind", "parse", "anchor", "expected"),
    [
        ("negation", OLD, "The old man runs.", "An old man is not running."),
        ("negation", NOT, "He's not running now", "He is running now"),
        ("negation", CANT, "He can't run now", "He can run now"),
        ("roles", BITES, "The dog bit a man.", "A man bites a dog in Rome today."),
        ("roles", NAMES, "Anna has seen Bob.", "Bob saw Anna."),
    ],
)
def test_what_is_changed(kind: str, parse: str, anchor: str, expected: str) -> None:
    assert changed(kind, parse, anchor) == expected


@pytest.mark.parametrize(
    ("kind", "parse", "anchor"),
    [
        ("number", TWO, "A dog runs."),  # the pair differs there already
        ("number", ONE, "two year"),  # no plural
        ("number", OLD, "An old man is running."),
        ("negation", OLD, "An old man does not run."),
        ("negation", OLD, "An old man doesn’t run."),
        ("negation", NOT, "He runs now"),  # mending it makes a paraphrase
        ("negation", OLD.replace("./.", "?/."), "Is an old man running?"),
        ("antonym", TWO, "Two dogs run."),
        ("antonym", "An/DT/det/1 other/JJ/amod/1", "an other"),
        ("antonym", "man/NN/ROOT/0", "a man"),  # no article
        ("roles", BITES, "A man bites the dog."),  # the anchor has the other order
        ("roles", BITES, "A dog bites."),
        ("roles", BITES.replace("bites", "kisses"), "A dog kisses a man."),
        ("roles", BITES.replace("man/NN", "men/NNS"), "A dog bites men."),
        ("roles", BITES.replace("man/NN", "him/PRP"), "A dog bites him."),
        ("roles", GROUP, "A band are watching a man."),  # "a man are watching"
    ],
)
def test_what_is_left_alone(kind: str, parse: str, anchor: str) -> None:
    assert changed(kind, parse, anchor) is None


def test_numbers_are_others_of_the_same_form() -> None:
    found = {changed("number", TWO, "two dogs and three cats", seed) for seed in range(99)}
    said = {str(text).split()[0] for text in found}
    assert said == {"Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"}
    digits = TWO.replace("Two", "30")
    found = {changed("number", digits, "30 dogs", seed) for seed in range(200)}
    assert {int(str(text).split()[0]) for text in found} == {*range(22, 39)} - {30}


def test_antonyms_are_the_frequent_ones_with_their_article() -> None:
    found = {changed("antonym", OLD, "an old man", seed) for seed in range(20)}
    assert found == {"A young man is running.", "An old woman is running."}
    # A word that the anchor has already would mend the sentence.
    found = {changed("antonym", OLD, "an old man and a woman", seed) for seed in range(20)}
    assert found == {"A young man is running."}
    assert ANTONYMS["NNS"]["men"] == ["women"] and ANTONYMS["NNS"]["boys"] == ["girls"]
    assert ANTONYMS["JJ"]["young"] == ["old"] and "other" not in ANTONYMS["JJ"]
    before = "A/DT/det/2 happy/JJ/amod/2 dog/NN/ROOT/2"
    assert changed("antonym", before, "a happy dog") == "An unhappy dog"
