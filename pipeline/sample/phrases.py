"""English phrase pairs for PARAGRAM vectors, from the sample's own synonyms.

Two sources: the wordings of every entry in the lexicon, in every inflected form, and what differs
between two wordings of one sentence (with the words around it), as PPDB takes its phrases out of
sentences that translate each other.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import combinations
from random import Random

from pipeline.sample import english, lexicon
from pipeline.sample.corpus import draw
from pipeline.sample.grammar import PLAIN, Wording

LONGEST = 6  # words of a phrase


def phrase_pairs(sentences: int, random: Random) -> list[tuple[str, str]]:
    """Distinct pairs of different phrases, lower-cased, in sorted order."""
    found = {*_synonyms(), *_spans(sentences, random)}
    return sorted({(a, b) for a, b in found if a != b and (b, a) not in found or a < b})


def _synonyms() -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()

    def add(*wordings: str) -> None:
        pairs.update(combinations([text.lower() for text in wordings], 2))

    for noun in lexicon.nouns():
        add(*noun.english)
        for word in noun.english:
            if "name" in noun.groups or "city" in noun.groups:
                continue
            add(english.articles(f"a {word}"), f"the {word}") if not noun.mass else add(
                f"some {word}", f"the {word}"
            )
        if not noun.groups & {"mass", "enpl", "name", "city"}:
            add(*map(english.plural, noun.english))
            add(english.plural(noun.english[0]), noun.english[0])
    for adjective in lexicon.adjectives():
        add(*adjective.english)
        add(*adjective.english_comparative)
    for action in (*lexicon.actions(), *lexicon.activities(), *lexicon.moves()):
        forms = ("base", "s", "past", "pp", "ing")
        for form in forms:
            add(*(english.verb(phrase, form) for phrase in action.english))
        add(*dict.fromkeys(english.verb(action.english[0], form) for form in forms))
    for phrase in (*lexicon.times(), *lexicon.places()):
        for _, wordings in phrase.english:
            add(*filter(None, wordings))
    return pairs


def _spans(sentences: int, random: Random) -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    for _ in range(sentences):
        frame, meaning = draw(random)
        left, right = (
            frame.in_english(meaning, choice).lower().rstrip(".?").replace(",", "").split()
            for choice in (PLAIN, Wording(random))
        )
        for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
            before, after = min(a, c, 1), min(len(left) - b, len(right) - d, 1)
            one, two = left[a - before : b + after], right[c - before : d + after]
            if tag == "replace" and max(len(one), len(two)) <= LONGEST:
                pairs.add((" ".join(one), " ".join(two)))
    return pairs
