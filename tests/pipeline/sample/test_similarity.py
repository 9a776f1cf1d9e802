"""Labels follow from how the pairs are built."""

from random import Random

import pytest

from pipeline.sample import lexicon
from pipeline.sample.frames.actions import DONE
from pipeline.sample.lexicon import NP
from pipeline.sample.similarity import label, labelled_pairs, theme


def meaning(**changes):
    done = {
        "act": next(a for a in lexicon.actions() if a.key == "buy"),
        "who": NP(lexicon.noun("Petr")),
        "what": NP(lexicon.noun("kabát")),
        "quality": next(a for a in lexicon.adjectives() if a.lemma == "nový"),
        "where": None,
        "when": lexicon.group(lexicon.times(), "past")[0],
    }
    return done | changes


SELL = next(a for a in lexicon.actions() if a.key == "sell")
JANA = NP(lexicon.noun("Jana"))
SKIRT = NP(lexicon.noun("sukně"))
LATER = lexicon.group(lexicon.times(), "past")[1]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 5),
        ({"when": None}, 4),  # a detail left out
        ({"when": None, "quality": None}, 3.4),
        ({"when": LATER}, 3.6),  # a detail changed
        ({"who": JANA}, 3),  # a participant changed
        ({"act": SELL}, 2.4),  # another event
        ({"who": JANA, "when": None}, 2.4),
        ({"who": JANA, "what": SKIRT}, 1.8),
        ({"who": JANA, "what": SKIRT, "when": None}, 1.4),
        ({"who": JANA, "what": SKIRT, "act": SELL}, 1),
        ({"who": JANA, "what": SKIRT, "act": SELL, "when": None}, 1),
    ],
)
def test_label(changes, expected):
    assert label(DONE, meaning(), meaning(**changes)) == expected
    assert label(DONE, meaning(**changes), meaning()) == expected


def test_theme_is_the_action_s():
    assert theme(DONE, meaning()) == "shopping"


@pytest.fixture(scope="module")
def data_set():
    return labelled_pairs(Random(3), set())


def test_labels_are_spread_over_the_scale(data_set):
    labels = [score for score, *_ in data_set]
    assert len(data_set) >= 250
    assert min(labels) == 0 and max(labels) == 5
    for low in range(5):
        assert sum(low <= score <= low + 1 for score in labels) >= 20
    assert any(score % 1 for score in labels)


def test_no_sentence_comes_twice(data_set):
    sentences = [text for _, *pair in data_set for text in pair]
    assert len(sentences) == len(set(sentences))


def test_known_sentences_are_left_out(data_set):
    known = {one for _, one, _ in data_set}
    again = labelled_pairs(Random(3), known)
    assert not known & {text for _, *pair in again for text in pair}
