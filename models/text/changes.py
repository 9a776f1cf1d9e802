"""Changes to a sentence that keep nearly all words but change the meaning.

A word is changed only if the paraphrase of the sentence, called the anchor, also has the word. A
word that the anchor lacks may be a translation error. Its change could correct the error, so that
the sentence has the same meaning as the anchor. For the same reason, a negation is removed only if
the anchor has a negation, and added only if the anchor has none.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"[^\W_]+?(?=n't)|n't|[^\W_]+")  # words as in spaCy: "is", "n't"
_COUNTS = "two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_NEGATIONS = frozenset("not n't no nt never none nobody nothing neither nor without cannot".split())  # noqa: SIM905
_ADVERBS = frozenset("only just merely necessarily too yet even".split())  # noqa: SIM905
_FULL = {"ca": "can", "wo": "will", "sha": "shall"}  # "ca" is from "can't"
_IRREGULAR = {"man": "men", "woman": "women", "child": "children", "wife": "wives"}
# Words that are neither replaced by an antonym nor used as antonyms. They need another article
# ("the same"), belong to phrases, or have several senses.
_FIXED = frozenset("other same few many much own such ground".split())  # noqa: SIM905
_MUTUAL = re.compile(r"(meet|met|marr|kiss|hug|embrac|fac|resembl|match|equal|fight|fought|dat)")


Antonyms = Mapping[str, Mapping[str, Sequence[str]]]
"""Antonyms by tag (`JJ`, `NN`, `NNS`) and word, most frequent first."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to change."""

    doc: Any  # `Doc` from an English spaCy pipeline
    anchor: Sequence[str]  # lower-case words of the paraphrase
    antonyms: Antonyms
    random: random.Random

    def text(self, changed: Mapping[int, str]) -> str:
        """Return the sentence with other words at the positions in `changed`; "" removes a word."""
        parts: list[str] = []
        for token in self.doc:
            if word := changed.get(token.i, token.text):
                parts.append(word + token.whitespace_)
            elif parts:
                parts[-1] = parts[-1].rstrip() + token.whitespace_
        return "".join(parts)


Change = Callable[[Sentence], str | None]  # returns None if the change does not apply


def words(text: str) -> list[str]:
    """Split a text into lower-case words. "n't" and "n’t" become the separate word "n't"."""
    return _WORD.findall(text.lower().replace("’", "'"))


def antonyms_by_tag(
    nouns: Mapping[str, Set[str]], adjectives: Mapping[str, Set[str]], counts: Mapping[str, int]
) -> Antonyms:
    """Select the antonyms that occur in a corpus, given the corpus's word `counts`.

    Antonyms of a word are sorted by count, with the most frequent antonym first.
    """
    plurals = {_plural(noun): frozenset(map(_plural, of)) for noun, of in nouns.items()}
    return {
        tag: {
            word: sorted(filter(counts.get, of - _FIXED), key=lambda o: (-counts[o], o))
            for word, of in each.items()
            if word not in _FIXED
        }
        for tag, each in (("JJ", adjectives), ("NN", nouns), ("NNS", plurals))
    }


def number(sentence: Sentence) -> str | None:
    """Change a number before a plural noun: "two dogs" → "five dogs"."""
    for token in sentence.doc:
        word = token.lower_
        if token.dep_ != "nummod" or token.head.tag_ != "NNS" or word not in sentence.anchor:
            continue
        others = []
        if word in _COUNTS:
            others = [other for other in _COUNTS if other != word]
        elif re.fullmatch(r"[1-9]\d{0,3}", word) and (n := int(word)) > 1:
            step = n // 4 + 1
            others = [str(m) for m in range(max(2, n - step), n + step + 1) if m != n]
        if others := [other for other in others if other not in sentence.anchor]:
            return sentence.text({token.i: _like(sentence.random.choice(others), token)})
    return None


def negation(sentence: Sentence) -> str | None:
    """Negate the main clause ("is running" → "is not running"), or remove a negation."""
    doc = sentence.doc
    if "?" in doc.text:
        return None
    found = [token for token in doc if token.lower_ in _NEGATIONS]
    if not found:
        auxiliary = next(filter(None, map(_auxiliary, doc.sents)), None)
        if auxiliary is None or _NEGATIONS.intersection(sentence.anchor):
            return None
        return sentence.text({auxiliary.i: f"{auxiliary.text} not"})
    (token, *more), last = found, len(doc) - 1
    before = doc[token.i - 1] if token.i else token
    if (
        more
        or token.lower_ not in ("not", "n't", "never")
        or not _NEGATIONS.intersection(sentence.anchor)
        or before.pos_ != "AUX"
        or token.i == last
        or doc[token.i + 1].lower_ in _ADVERBS
    ):
        return None
    return sentence.text({before.i: _FULL.get(before.lower_, before.text), token.i: ""})


def antonym(sentence: Sentence) -> str | None:
    """Replace an adjective or noun by its antonym: "an old man" → "a young man"."""
    found = []
    for token in sentence.doc:
        others = sentence.antonyms.get(token.tag_, {}).get(token.lower_, ())
        fits = token.tag_ == "JJ" or any(c.dep_ in ("det", "nummod") for c in token.children)
        if not others or not fits or token.lower_ not in sentence.anchor:
            continue
        if not set(others).intersection(sentence.anchor):
            changed = {token.i: _like(others[0], token)}
            before = sentence.doc[token.i - 1] if token.i else token
            if before.lower_ in ("a", "an"):
                changed[before.i] = _like("an" if others[0][0] in "aeiou" else "a", before)
            found.append(changed)
    return sentence.text(sentence.random.choice(found)) if found else None


def roles(sentence: Sentence) -> str | None:
    """Exchange subject and object: "a dog bites a man" → "a man bites a dog"."""
    anchor = sentence.anchor
    for first, second in _exchangeable(sentence.doc):
        heads = first.lower_, second.lower_
        if heads[0] == heads[1] or any(anchor.count(head) != 1 for head in heads):
            continue
        if anchor.index(heads[0]) < anchor.index(heads[1]):
            one, other = (sentence.doc[t.left_edge.i : t.right_edge.i + 1] for t in (first, second))
            if one.end <= other.start and _is_plain(one) and _is_plain(other):
                start = sentence.doc[: one.start].text_with_ws
                subject = _beginning(other, not start) + one[-1].whitespace_
                middle = sentence.doc[one.end : other.start].text_with_ws
                rest = other[-1].whitespace_ + sentence.doc[other.end :].text
                return f"{start}{subject}{middle}{_beginning(one, False)}{rest}"
    return None


CHANGES: dict[str, tuple[Change, str]] = {
    "number": (number, "another number"),
    "negation": (negation, "its main clause negated, or without its negation"),
    "antonym": (antonym, "an adjective's or noun's antonym (WordNet)"),
    "roles": (roles, "subject and object exchanged"),
}
"""Changes by name, each with a description that completes the phrase "the positive with …"."""


def _auxiliary(clause: Any) -> Any:
    """Return the finite auxiliary of a main clause, or None if "not" cannot follow."""
    root = clause.root
    subjects = [child for child in root.children if child.dep_ in ("nsubj", "nsubjpass", "expl")]
    verbs = [child for child in root.children if child.dep_ in ("aux", "auxpass")] or [root]
    verb = verbs[0]
    finite = verb.tag_ == "MD" or verb.lower_ in ("is", "are", "was", "were")
    fits = finite and subjects and subjects[0].i < verb.i < clause.end - 1
    return verb if fits and verb.nbor().is_alpha else None


def _exchangeable(doc: Any) -> Iterator[tuple[Any, Any]]:
    """Yield exchangeable words: subject and object or, in the passive, subject and agent."""
    for verb in doc:
        by = {child.dep_: child for child in verb.children}
        agent = next((word for word in by["agent"].children), None) if "agent" in by else None
        active = by.get("nsubj"), by.get("dobj", by.get("obj"))
        for subject, other in (active, (by.get("nsubjpass"), agent)):
            if subject and other and _agree(verb, subject, other):
                yield subject, other


def _agree(verb: Any, subject: Any, other: Any) -> bool:
    """Return whether the verb agrees with both words, and is not mutual like "meet"."""
    group = subject.tag_ == "NN" and any(c.lower_ in ("are", "were") for c in verb.children)
    return subject.tag_ == other.tag_ and not group and not _MUTUAL.match(verb.lower_)


def _is_plain(phrase: Any) -> bool:
    head = phrase.root
    article = any(child.dep_ in ("det", "nummod") for child in head.children)
    return (article or head.tag_ in ("NNS", "NNP")) and not any(
        token.dep_ in ("conj", "cc") or token.is_punct or token.pos_ == "PRON" for token in phrase
    )


def _beginning(phrase: Any, capital: bool) -> str:
    """Return a phrase as it is written at the start of a sentence (`capital`) or elsewhere."""
    text = str(phrase.text)
    if capital:
        return text[0].upper() + text[1:]
    named = phrase[0].pos_ == "PROPN" or (phrase[0].text.isupper() and len(phrase[0].text) > 1)
    return text if named or phrase.start != phrase[0].sent.start else text[0].lower() + text[1:]


def _like(word: str, token: Any) -> str:
    return word.capitalize() if token.text[0].isupper() else word


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return _IRREGULAR.get(noun, noun + ending)
