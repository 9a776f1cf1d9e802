"""Phrase pairs from aligned sentences: examples by hand, and what holds for any sentences."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.models.text.tokens import PairText
from paraloom.papers.analyses.phrase_pairs import LONGEST, SCHEMA, find_phrases, merge_phrases

WORDS = ["a", "b", "c", "d", "e", ".", "3"]
sentence = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def found(*pairs: tuple[str, str]) -> Counter[tuple[str, str]]:
    left, right = (pa.array(side, pa.string()) for side in zip(*pairs, strict=True))
    table = find_phrases(PairText(left, right))
    assert table.schema == SCHEMA
    return Counter({(r["phrase"], r["paraphrase"]): r["count"] for r in table.to_pylist()})


def test_spans_with_and_without_their_neighbours() -> None:
    assert found(("He jumps off the wall.", "He is jumping from the wall.")) == {
        ("is jumping from", "jumps off"): 1,
        ("he is jumping from", "he jumps off"): 1,
        ("is jumping from the", "jumps off the"): 1,
        ("he is jumping from the", "he jumps off the"): 1,
    }


def test_the_same_pair_in_both_directions_counts_as_one() -> None:
    assert found(("so huge", "very huge"), ("very huge", "so huge"), ("x", "x"), ("", "a")) == {
        ("so huge", "very huge"): 2
    }


@given(st.lists(st.tuples(sentence, sentence), max_size=4))
def test_whatever_is_found_stands_in_the_sentences(pairs: list[tuple[str, str]]) -> None:
    if not pairs:
        return
    for (phrase, paraphrase), count in found(*pairs).items():
        assert phrase < paraphrase
        assert max(phrase.count(" "), paraphrase.count(" ")) in range(1, LONGEST)
        assert all(word.isalpha() for side in (phrase, paraphrase) for word in side.split(" "))
        places = 0
        for left, right in pairs:
            for one, other in ((phrase, paraphrase), (paraphrase, phrase)):
                places += f" {one} " in f" {left} " and f" {other} " in f" {right} "
        assert places and count


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=6))
@settings(max_examples=30)
def test_counting_in_parts_is_counting_at_once(pairs: list[tuple[str, str]]) -> None:
    def tables(parts: list[list[tuple[str, str]]]) -> Iterator[pa.Table]:
        for part in parts:
            left, right = (pa.array(side, pa.string()) for side in zip(*part, strict=True))
            yield find_phrases(PairText(left, right))

    parts = merge_phrases(tables([[pair] for pair in pairs]))
    whole = merge_phrases(tables([pairs]))
    assert sorted(map(str, parts.to_pylist())) == sorted(map(str, whole.to_pylist()))
