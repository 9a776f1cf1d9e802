"""English phrase pairs for PARAGRAM vectors, from the sample's own synonyms.

Two sources: the wordings of every entry in the lexicon, in every inflected form, and what differs
between two wordings of one sentence (with the words around it), as PPDB takes its phrases out of
sentences that translate each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import combinations
from random import Random

from pipeline.sample import english, lexicon
from pipeline.sample.corpus import draw
from pipeline.sample.grammar import Wording
from pipeline.sample.lexicon import NP, Action, Adjective, Filler, Phrase

LONGEST = 6  # words of a phrase


def phrase_pairs(sentences: int, random: Random) -> list[tuple[str, str]]:
    """Distinct pairs of different phrases, lower-cased, in sorted order.

    Args:
        sentences: how many to draw: their fillers give synonyms, their wordings phrases.
        random: what to draw with.
    """
    found: set[tuple[str, str]] = set()
    fillers: set[Filler | None] = {NP(noun) for noun in lexicon.nouns()}
    for _ in range(sentences):
        frame, meaning = draw(random)
        fillers |= {*meaning.values(), *frame.verbs.values()}
        found |= _spans(frame.in_english(meaning), frame.in_english(meaning, Wording(random)))
    for filler in fillers:
        for wordings in _wordings(filler):
            found.update(combinations([text.lower() for text in wordings if text], 2))
    return sorted({(min(pair), max(pair)) for pair in found if pair[0] != pair[1]})


def _wordings(filler: Filler | None) -> Iterator[Sequence[str]]:
    """Groups of expressions of one meaning, or nearly one: synonyms, inflected forms."""
    if isinstance(filler, NP):
        noun = filler.noun
        yield noun.english
        for word in () if noun.groups & {"name", "city"} else noun.english:
            yield f"some {word}" if noun.mass else english.articles(f"a {word}"), f"the {word}"
        if not noun.groups & {"mass", "enpl", "name", "city"}:
            yield [english.plural(word) for word in noun.english]
            yield noun.english[0], english.plural(noun.english[0])
    elif isinstance(filler, Adjective):
        yield filler.english
        yield filler.english_comparative
        yield [*filler.english[:1], *filler.english_comparative[:1]]
        yield from ((word, f"is {word}") for word in filler.english if word)
    elif isinstance(filler, Action):
        forms = ("base", "s", "past", "pp", "ing")
        for form in forms:
            yield [english.verb(phrase, form) for phrase in filler.english]
        yield list(dict.fromkeys(english.verb(filler.english[0], form) for form in forms))
    elif isinstance(filler, Phrase):
        for _, wordings in filler.english:
            yield wordings
        yield list(dict.fromkeys(wordings[0] for _, wordings in filler.english))


def _spans(one: str, two: str) -> set[tuple[str, str]]:
    """Where two wordings of a sentence differ, with the words around it."""
    left, right = (re.sub(r"[.,?]", " ", text.lower()).split() for text in (one, two))
    pairs = set()
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        context = 1 if tag == "replace" else 2
        before, after = min(a, c, context), min(len(left) - b, len(right) - d, context)
        first, second = left[a - before : b + after], right[c - before : d + after]
        sizes = sorted((len(first), len(second)))
        if tag != "equal" and sizes[0] > 1 and sizes[1] <= LONGEST:
            pairs.add((" ".join(first), " ".join(second)))
    return pairs
