"""Check whether the subject and the object of a verb are swapped."""

from typing import Any

import numpy as np

from paraloom.models.scorers.base import Resource, check
from paraloom.models.scorers.tokens.content_overlap import content_stem
from paraloom.models.text.parses import Parser
from paraloom.models.text.tokens import PairText

_NOMINATIVE = {"me": "i", "him": "he", "her": "she", "us": "we", "them": "they", "whom": "who"}


@check(
    "subject and object are not swapped",
    "subject and object swapped",
    resource=Resource(name="spacy", open=Parser, remedy="a spaCy pipeline: name it in score.spacy"),
)
def same_roles(pairs: PairText, spacy: Parser) -> np.ndarray:
    """Return 0 if one side says "A bites B" and the other side says "B bites A", else 1: float32
    [n]. Subjects, verbs and objects are compared by the stems of their head words. "B is bitten by
    A" counts as "A bites B"."""
    sides = pairs.reference_text.to_pylist(), pairs.translation_text.to_pylist()
    texts = list(dict.fromkeys([*sides[0], *sides[1]]))
    clauses = dict(zip(texts, map(_clauses, spacy.pipeline.pipe(texts)), strict=True))
    passes = []
    for one, other in zip(*([clauses[text] for text in side] for side in sides), strict=True):
        swapped = {(object_, verb, subject) for subject, verb, object_ in one - other}
        passes.append(swapped.isdisjoint(other - one))
    return np.array(passes, np.float32)


def _clauses(doc: Any) -> set[tuple[str, str, str]]:
    """Return the stems of subject, verb and object, for each clause that has all three."""
    found = set()
    for verb in doc:
        by = {child.dep_: child for child in verb.children}
        if "agent" in by:
            by |= {word.dep_: word for word in by["agent"].children}
        for subject, object_ in (("nsubj", "dobj"), ("pobj", "nsubjpass")):
            if subject in by and object_ in by:
                found.add((_stem(by[subject]), _stem(verb), _stem(by[object_])))
    return found


def _stem(token: Any) -> str:
    return content_stem(token.lower_) or _NOMINATIVE.get(token.lower_, token.lower_)
