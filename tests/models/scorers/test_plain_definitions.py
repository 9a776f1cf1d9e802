"""The scorers beyond the papers' three against their definitions, written out pair by pair."""

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mosestokenizer import MosesTokenizer
from numpy.typing import NDArray
from scipy.stats import kendalltau

from benchmarks.plain_scoring import fast_tokenizer
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.tokens.edit_distance import edit_distance as by_characters
from paraloom.models.text.idf import count_words, idf_table
from paraloom.models.text.tokens import PairText


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
def test_any_tokens_score_as_plainly_defined(
    name: str, rows: list[tuple[list[str], list[str]]]
) -> None:
    found = score([(" ".join(r), " ".join(t)) for r, t in rows], PairScorer([name]))[name]
    np.testing.assert_allclose(found, [PLAIN[name](r, t) for r, t in rows], atol=1e-6)


def test_a_long_text_among_short_ones() -> None:
    rng = np.random.default_rng(0)
    long = [f"w{i}" for i in rng.permutation(3000)]
    other = [long[i] for i in rng.permutation(3000)]
    rows = [("w1 w2", "w2 w1"), (" ".join(long), " ".join(other)), ("w2 w1", "w2 w1")]
    found = score(rows, PairScorer(["word_order"]))["word_order"]
    np.testing.assert_allclose(found, [-1, word_order(long, other), 1], atol=1e-6)


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
