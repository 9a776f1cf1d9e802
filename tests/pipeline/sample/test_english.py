import pytest

from pipeline.sample import english


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("key", "keys"), ("story", "stories"), ("watch", "watches"), ("scarf", "scarves"),
     ("T-shirt", "T-shirts"), ("train ticket", "train tickets"), ("photo", "photos")],
)  # fmt: skip
def test_plural(noun, plural):
    assert english.plural(noun) == plural


@pytest.mark.parametrize(
    ("phrase", "form", "inflected"),
    [
        ("buy", "past", "bought"), ("carry", "s", "carries"), ("fix", "s", "fixes"),
        ("tidy", "past", "tidied"), ("play", "past", "played"), ("bake", "ing", "baking"),
        ("have", "s", "has"), ("lie", "ing", "lying"), ("be", "pp", "been"),
        ("see", "ing", "seeing"), ("travel", "past", "travelled"), ("can", "s", "can"),
        ("must", "past", "had to"), ("ride a bike", "pp", "ridden a bike"), ("cut", "past", "cut"),
        ("would like to", "s", "would like to"), ("set off for", "ing", "setting off for"),
    ],
)  # fmt: skip
def test_verb(phrase, form, inflected):
    assert english.verb(phrase, form) == inflected


@pytest.mark.parametrize(
    ("sentence", "right"),
    [
        ("A apple and a pear", "An apple and a pear"),
        ("a old umbrella", "an old umbrella"),
        ("a university", "a university"),
        ("a email and a hour", "an email and an hour"),
        ("a interesting book", "an interesting book"),
    ],
)
def test_articles(sentence, right):
    assert english.articles(sentence) == right


def test_contractions():
    assert english.contract("I am afraid it is cold") == "I'm afraid it is cold"
    assert english.contract("There are two") == "There are two"
    assert english.contract("They will go") == "They'll go"
