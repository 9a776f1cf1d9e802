"""The scorers beyond the papers' three against their definitions, written out pair by pair."""

import math
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mosestokenizer import MosesTokenizer
from numpy.typing import NDArray
from scipy.stats import kendalltau
from snowballstemmer.english_stemmer import EnglishStemmer

from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.tokens.content_overlap import content_stem
from paraloom.models.scorers.tokens.edit_distance import edit_distance as by_characters
from paraloom.models.text.idf import count_words, idf_table
from paraloom.models.text.tokens import PairText
from tests.plain_scoring import fast_tokenizer
from tests.small_encoder import encoder_of_texts


def length_ratio(r: list[str], t: list[str]) -> float:
    return min(len(r), len(t)) / max(len(r), len(t)) if r or t else 1


def unigram_f1(r: list[str], t: list[str]) -> float:
    shared = (Counter(r) & Counter(t)).total()
    if not shared:
        return float(r == t)
    precision, recall = shared / len(t), shared / len(r)
    return 2 * precision * recall / (precision + recall)


def edit_distance(r: list[str], t: list[str]) -> float:
    last = list(range(len(t) + 1))
    for i, a in enumerate(r, 1):
        row = [i]
        for j, b in enumerate(t, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b)))
        last = row
    return last[-1] / max(len(r), len(t), 1)


def word_order(r: list[str], t: list[str]) -> float:
    places = defaultdict(list)
    for place, token in enumerate(t):
        places[token].append(place)
    shared = [(i, places[token].pop(0)) for i, token in enumerate(r) if places[token]]
    return kendalltau(*zip(*shared, strict=True)).statistic if len(shared) > 1 else 1


PLAIN = {f.__name__: f for f in (length_ratio, unigram_f1, edit_distance, word_order)}
TOKENS = st.lists(st.sampled_from([f"w{i}" for i in range(12)]), max_size=40)


def score(rows: list[tuple[str, str]], scorer: PairScorer) -> dict[str, NDArray[Any]]:
    return scorer.score(*(pa.array([row[side] for row in rows], pa.string()) for side in (0, 1)))


@pytest.mark.parametrize("name", PLAIN)
@given(rows=st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=8))
@settings(max_examples=50)
def test_any_tokens_score_as_defined(name: str, rows: list[tuple[list[str], list[str]]]) -> None:
    found = score([(" ".join(r), " ".join(t)) for r, t in rows], PairScorer([name]))[name]
    np.testing.assert_allclose(found, [PLAIN[name](r, t) for r, t in rows], atol=1e-6)


def test_more_tokens_than_the_first_plane_has_characters() -> None:
    rows = [(f"w{i}", f"w{i} w{i + 1}") for i in range(0, 140_000, 2)]
    texts = [pa.array([row[side] for row in rows]) for side in (0, 1)]
    assert by_characters(PairText(*texts)).tolist() == [0.5] * len(rows)


def test_mean_idf_as_plainly_defined(pairs: list[tuple[str, str]]) -> None:
    pairs = pairs[:1000] + pairs[-2000:]
    tokenize = fast_tokenizer()
    references = [r for r, _ in pairs[:2000]]  # so that some words are unknown
    count = Counter(token for text in references for token in set(tokenize(text)))
    expected = [
        np.mean([math.log((1 + 2000) / (1 + count[x])) for text in pair for x in tokenize(text)])
        for pair in pairs
    ]
    idf = idf_table(count_words(pa.array(references)))
    found = score(pairs, PairScorer(["mean_idf"], idf=idf))["mean_idf"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.std() > 0.1


def test_tokens_are_those_of_the_language() -> None:
    references = ["L'homme qu'il voit court.", "C'est l'été aujourd'hui.", "M. Dupont dort.", ""]
    translations = ["L'homme que l'on voit.", "Aujourd'hui, c'est l'été.", "Mr. Dupont.", "Rien."]
    moses = MosesTokenizer("fr")
    tokens = [
        [[token.lower() for token in moses.tokenize(text)] for text in pair]
        for pair in zip(references, translations, strict=True)
    ]
    idf = idf_table(count_words(pa.array(references), "fr"))
    names = [*PLAIN, "mean_idf"]
    sides = pa.array(references), pa.array(translations)
    found = PairScorer(names, language="fr", idf=idf).score(*sides)
    for name, definition in PLAIN.items():
        np.testing.assert_allclose(found[name], [definition(*pair) for pair in tokens], atol=1e-6)
    means = [idf.at(idf.rows([*r, *t])).mean() for r, t in tokens]
    np.testing.assert_allclose(found["mean_idf"], means, atol=1e-6)
    english = PairScorer(names, idf=idf).score(*sides)
    assert not all(np.array_equal(found[name], english[name]) for name in names)
    sides = pa.array(["猫が走る。"]), pa.array(["犬が走る。"])
    assert PairScorer(["unigram_f1"], language="ja").score(*sides)["unigram_f1"] == 0.8


FUNCTION_WORDS = ["a", "the", "is", "on", "they", ","]
CONTENT_WORDS = ["dog", "dogs", "walking", "walks", "attire", "2"]


def overlap(first: str, second: str, language: str = "en") -> float:
    scorer = PairScorer(["content_overlap"], language=language)
    return float(score([(first, second)], scorer)["content_overlap"][0])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("A man sits on a rock", "A man sitting on a rock.", 1),
        ("A man sits on a rock", "The man sat at the rocks", 1),
        ("Two children ran.", "2 child running", 1), ("He isn't here.", "He is not here.", 1),
        ("She cannot swim.", "She can't swim.", 1), ("the of and", "", 1),
        ("casual attire", "formal attire", 0.5), ("He is here now.", "He is not here now.", 2 / 3),
        ("Three dogs", "Two dogs", 0.5), ("a dog", "the", 0), ("a dog and a dog", "a dog", 2 / 3),
    ],
)  # fmt: skip
def test_words_count_without_inflection(first: str, second: str, expected: float) -> None:
    assert overlap(first, second) == pytest.approx(expected)


SIDES = st.lists(st.sampled_from(FUNCTION_WORDS + CONTENT_WORDS), max_size=12)


@given(st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=12))
@settings(max_examples=50)
def test_any_tokens_overlap_as_defined(rows: list[tuple[list[str], list[str]]]) -> None:
    stem = EnglishStemmer().stemWord
    expected = []
    for row in rows:
        r, t = (Counter(stem(w) for w in side if w not in FUNCTION_WORDS) for side in row)
        total = r.total() + t.total()
        expected.append(2 * (r & t).total() / total if total else 1)
    texts = [(" ".join(r), " ".join(t)) for r, t in rows]
    found = score(texts, PairScorer(["content_overlap"]))["content_overlap"]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_other_languages() -> None:
    assert overlap("Les chiens courent", "Le chien court", "fr") > overlap("a b c", "b d e", "fr")
    assert overlap("Die Häuser", "die Häusern", "deu") == 1  # in any standard
    assert overlap("hundene", "hunden", "nb") == overlap("hundene", "hunden", "no") == 1
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


def test_the_cosine_of_an_encoder(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    pairs, tokenize = pairs[:500], fast_tokenizer()
    made = encoder_of_texts([r for r, _ in pairs])
    words = {word: i for i, word in enumerate(made.vocabularies["words"].words)}
    table = made.encoder.state_dict()["input.table.weight"].double().numpy()
    expected = []
    for pair in pairs:
        r, t = (table[[words.get(x, 0) for x in tokenize(text)]].mean(axis=0) for text in pair)
        expected.append(r @ t / np.linalg.norm(r) / np.linalg.norm(t))
    found = score(pairs, PairScorer(["encoder_similarity"], encoder=made))["encoder_similarity"]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.dtype == np.float32 and 0.1 < found.std() < 0.9
    made.save(tmp_path / "embeddings")
    opened = PairScorer(["encoder_similarity"], encoder=str(tmp_path / "embeddings"))
    assert np.array_equal(score(pairs, opened)["encoder_similarity"], found)
