"""`content_overlap` against its definition, and what it takes for the same word."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer

from benchmarks.plain_scoring import fast_tokenizer
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.tokens.content_overlap import content_stem

FUNCTION_WORDS = ["a", "the", "is", "on", "they", ","]
CONTENT_WORDS = ["dog", "dogs", "walking", "walks", "attire", "2"]


def overlap(first: str, second: str, language: str = "en") -> float:
    scorer = PairScorer(["content_overlap"], language=language)
    return float(scorer.score(pa.array([first]), pa.array([second]))["content_overlap"][0])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("A man sits on a rock", "A man sitting on a rock.", 1),
        ("A man sits on a rock", "The man sat at the rocks", 1),
        ("Two children ran.", "2 child running", 1),
        ("He isn't here.", "He is not here.", 1),
        ("She cannot swim.", "She can't swim.", 1),
        ("the of and", "", 1),
        ("casual attire", "formal attire", 0.5),
        ("He is here now.", "He is not here now.", 2 / 3),
        ("Three dogs", "Two dogs", 0.5),
        ("a dog", "the", 0),
        ("a dog and a dog", "a dog", 2 / 3),
    ],
)
def test_words_count_without_inflection(first: str, second: str, expected: float) -> None:
    assert overlap(first, second) == pytest.approx(expected)


@given(
    st.lists(
        st.tuples(*[st.lists(st.sampled_from(FUNCTION_WORDS + CONTENT_WORDS), max_size=12)] * 2),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=50)
def test_any_tokens_score_as_defined(rows: list[tuple[list[str], list[str]]]) -> None:
    stem = EnglishStemmer().stemWord
    expected = []
    for row in rows:
        r, t = (Counter(stem(w) for w in side if w not in FUNCTION_WORDS) for side in row)
        total = r.total() + t.total()
        expected.append(2 * (r & t).total() / total if total else 1)
    sides = (pa.array([" ".join(row[side]) for row in rows]) for side in (0, 1))
    found = PairScorer(["content_overlap"]).score(*sides)["content_overlap"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_other_languages() -> None:
    assert overlap("Les chiens courent", "Le chien court", "fr") > overlap("a b c", "b d e", "fr")
    assert overlap("Die Häuser", "die Häusern", "deu") == 1  # in any standard
    assert overlap("psi", "psov", "sk") == 0  # Snowball has no stemmer of Slovak
    assert overlap("Straße", "STRASSE", "tlh") == 1
    assert overlap("猫が走る。", "犬が走る。", "ja") == pytest.approx(0.75)  # letters, but no marks


def test_threads_do_not_disturb_each_other(pairs: list[tuple[str, str]]) -> None:
    tokenize = fast_tokenizer()
    words = sorted({token for pair in pairs[:500] for text in pair for token in tokenize(text)})
    content_stem.cache_clear()
    alone = [content_stem(word) for word in words]
    content_stem.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(content_stem, words)) == alone
