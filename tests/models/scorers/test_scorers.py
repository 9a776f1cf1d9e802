"""Every scorer against its plain definition on many pairs, and what holds for all of them."""

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraloom.models.errors import UserError
from paraloom.models.scorers import SCORERS, PairScorer
from paraloom.models.scorers.learned.paragram_similarity import PARAGRAM
from paraloom.models.scorers.tokens.content_overlap import content_stem
from paraloom.models.scorers.tokens.ngrams import shared_ngrams
from paraloom.models.scorers.tokens.repetition import repetition
from paraloom.models.text.tokens import PairText
from paraloom.models.text.vectors import UNKNOWN, WordVectors, load_vectors, write_vectors
from tests import plain_scoring as plain
from tests.run_helpers import Patch
from tests.small_encoder import small_encoder

NAMES = list(SCORERS)
WORDS = ["a", "dog", "the", "runs", "fast", "and", "sees", "cats", ".", ","]
VECTORS = WordVectors(WORDS[:7], np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32))
IDF = WordVectors([UNKNOWN, *WORDS], np.arange(11, dtype=np.float32)[:, np.newaxis])


class Model:
    """In place of a translation model."""

    def score(self, sources: Sequence[str], references: Sequence[str]) -> NDArray[np.float32]:
        pairs = zip(sources, references, strict=True)
        return np.array([-len(s) / (len(r) + 1) for s, r in pairs], np.float32)


class Transformer:
    """In place of models of sentence-transformers."""

    device = torch.device("cpu")
    num_labels = 1
    pipeline = SimpleNamespace(pipe=lambda texts: [[] for _ in texts])  # in place of spaCy's

    def encode(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        return np.eye(8, dtype=np.float32)[[len(text) % 8 for text in texts]]

    def predict(self, pairs: Sequence[tuple[str, str]], **options: Any) -> NDArray[np.float32]:
        return np.array([abs(len(a) - len(b)) for a, b in pairs], np.float32)


TABLES: dict[str, Any] = {
    **{"paragram": VECTORS, "idf": IDF, "translation_model": Model()},
    "forward_model": Model(),
    "encoder": small_encoder(WORDS[:7]),
    **{"sentence_model": Transformer(), "cross_encoder_model": Transformer()},
    **{"wordnet": {"runs": {"sees"}, "sees": {"runs"}}, "spacy": Transformer()},
}
SCORER = PairScorer(NAMES, **TABLES)

sentences = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
columns = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=25)


def score(rows: list[tuple[str, str]], scorer: PairScorer = SCORER) -> dict[str, NDArray[Any]]:
    """Scores of pairs of reference and translation; the source is the reference."""
    reference, translation = (pa.array([row[of] for row in rows], pa.string()) for of in (0, 1))
    certain = pa.array([-len(row[1]) / 10 for row in rows], pa.float32())
    return scorer.score(reference, translation, reference, translation_score=certain)


def plain_idf(text: str) -> float:
    return float(np.mean([WORDS.index(token) + 1 for token in text.split()] or [0]))


def plain_repetition(tokens: Sequence[str], least: int = 3) -> float:
    """From each token, and for each length of a phrase: how far do tokens equal those before?"""
    covered: set[int] = set()
    for size, start in product(range(1, 51), range(len(tokens))):
        end = max(start, size)
        while end < len(tokens) and tokens[end] == tokens[end - size]:
            end += 1
        stretch = range(max(start, size), end)
        if len(stretch) >= max(size, least) and any(
            c.isalnum() for i in stretch for c in tokens[i]
        ):
            covered |= {*stretch}
    return len(covered) / max(len(tokens), 1)


def plain_dual(text: str) -> float:
    there, back = len(text) / 10, len(text) / (len(text) + 1)
    return math.exp(-abs(there - back) - (there + back) / 2)


@pytest.fixture(scope="module")
def vectors(pairs: list[tuple[str, str]]) -> WordVectors:
    rng = np.random.default_rng(2)
    tokenize = plain.fast_tokenizer()
    tokens = sorted({token for pair in pairs for text in pair for token in tokenize(text)})
    known = [t for t in tokens if rng.random() < 0.9]
    return WordVectors(known, rng.normal(size=(len(known), 50)).astype(np.float32))


def test_many_pairs_score_as_defined(pairs: list[tuple[str, str]], vectors: WordVectors) -> None:
    by_word = dict(zip(vectors.words.to_pylist(), vectors.matrix.astype(float), strict=True))
    references, translations = zip(*pairs, strict=True)
    expected = plain.score(references, translations, by_word, plain.fast_tokenizer())
    found = score(pairs, PairScorer(["trigram_overlap", "paragram_similarity"], paragram=vectors))
    assert list(found) == list(expected)
    for name, values in found.items():
        assert values.dtype == (np.int16 if name.endswith("_tokens") else np.float32)
        np.testing.assert_allclose(values, expected[name], atol=2e-6, err_msg=name)
    assert found["trigram_overlap"].std() > 0.2  # the pairs are of every kind
    assert found["paragram_similarity"].std() > 0.1


def test_no_score_depends_on_the_batch(pairs: list[tuple[str, str]], vectors: WordVectors) -> None:
    scorer = PairScorer(NAMES, **{**TABLES, "paragram": vectors})
    pairs = pairs[:300] + pairs[-4500:]  # more than one block
    whole = score(pairs, scorer)
    order = np.random.default_rng(3).permutation(len(pairs))
    mixed = score([pairs[i] for i in order], scorer)
    for size in (1, 7, 700):
        pieces = [score(pairs[at : at + size], scorer) for at in range(0, 100 * size, size)]
        for name, values in whole.items():
            parts = np.concatenate([piece[name] for piece in pieces])
            assert np.array_equal(values[: len(parts)], parts), name  # to the last bit
            assert np.array_equal(values[order], mixed[name]), name


def test_nor_on_the_size_of_a_block(pairs: list[tuple[str, str]], monkeypatch: Patch) -> None:
    rows = [*pairs[:10], *pairs[-10:], ("", "a")]
    whole = score(rows)
    calls: list[str] = []

    class Counted(Transformer):
        def __getattribute__(self, name: str) -> Any:
            calls.extend([name] * (name in ("encode", "predict")))
            return super().__getattribute__(name)

    models = dict.fromkeys(("sentence_model", "cross_encoder_model"), Counted())
    for module in ("pair_scorer", "learned.paragram_similarity"):
        monkeypatch.setattr(f"paraloom.models.scorers.{module}._ROWS", 4)
        calls.clear()
        for name, values in score(rows, PairScorer(NAMES, **TABLES | models)).items():
            assert np.array_equal(values, whole[name]), (module, name)
        assert calls == ["encode", "predict"]  # these get all rows: they make their own batches


CHECKS = ("same_numbers", "same_names", "same_negation", "no_antonyms", "same_roles")

# lowest, highest, and the value of a text against itself: 0 where it has nothing to compare
PROPERTIES: dict[str, tuple[float, float, Callable[[str], float]]] = {
    "trigram_overlap": (0, 1, lambda text: len(text.split()) >= 3),
    "paragram_similarity": (-1, 1, lambda text: not set(WORDS[:7]).isdisjoint(text.split())),
    "length_ratio": (0, 1, lambda text: 1),
    "unigram_f1": (0, 1, lambda text: 1),
    "content_overlap": (0, 1, lambda text: 1),
    "edit_distance": (0, 1, lambda text: 0),
    "unmatched_words": (0, np.inf, lambda text: 0),
    "word_order": (-1, 1, lambda text: 1),
    "mean_idf": (0, 10, plain_idf),
    "repetition": (0, 1, lambda text: plain_repetition(text.split())),
    **dict.fromkeys(CHECKS, (0, 1, lambda text: 1)),
    "reference_score": (-np.inf, 0, lambda text: -len(text) / (len(text) + 1)),
    "source_score": (-np.inf, 0, lambda text: -len(text) / (len(text) + 1)),
    "dual_score": (0, 1, plain_dual),
    "encoder_similarity": (-1, 1, lambda text: text != ""),
    "sentence_similarity": (-1, 1, lambda text: text.strip() != ""),
    "cross_encoder": (-np.inf, np.inf, lambda text: 0),
}
LOWER_IS_BETTER = {"edit_distance", "repetition", "unmatched_words"}
ONE_SIDED = {"reference_score", "source_score", "dual_score", "repetition"}  # one side is judged


@pytest.mark.parametrize("name", NAMES)
@given(rows=columns)
@settings(max_examples=50)
def test_range_symmetry_identity(name: str, rows: list[tuple[str, str]]) -> None:
    scorer = PairScorer([name], **TABLES)
    values = score(rows, scorer)[name]
    low, high, of_itself = PROPERTIES[name]
    assert values.dtype == np.float32
    assert ((values >= low) & (values <= high)).all()
    bounds = tuple(None if np.isinf(bound) else bound for bound in (low, high))
    assert SCORERS[name].range in (bounds, (None, None))
    assert SCORERS[name].higher_is_better is (name not in LOWER_IS_BETTER)
    if name not in ONE_SIDED:
        assert np.array_equal(values, score([(t, r) for r, t in rows], scorer)[name])
    same = score([(r, r) for r, _ in rows], scorer)[name]
    expected = np.array([of_itself(r) for r, _ in rows], np.float32)
    np.testing.assert_allclose(same, expected, rtol=1e-6 if name in ONE_SIDED else 0, atol=0)


def test_many_words_make_no_two_trigrams_the_same(monkeypatch: Patch) -> None:
    rng = np.random.default_rng(4)
    texts = [" ".join(f"w{i}" for i in rng.integers(40, size=40)) for _ in range(400)]
    rows = [(text, text[: rng.integers(160)] + texts[0]) for text in texts]
    direct = score(rows)["trigram_overlap"]
    for bits in (20, 24, 30):  # forces dense numbering, at one step or another
        monkeypatch.setattr("paraloom.models.scorers.tokens.ngrams._BITS", bits)
        assert np.array_equal(score(rows)["trigram_overlap"], direct)
    assert len(set(direct.tolist())) > 20


def test_many_words_and_many_rows_make_no_two_trigrams_the_same() -> None:
    """Rows and three numbers of tokens take more than 64 bits."""
    words = [f"w{i}" for i in range(600 * 300)]
    rows = [words[start : start + 300] for start in range(0, len(words), 300)]
    sides = rows, [[*row[100:], *row[:100]] for row in rows]
    columns = [pa.array([" ".join(row) for row in side]) for side in sides]
    text = PairText(*columns)
    shared = shared_ngrams((text.reference, text.translation), len(text.vocabulary), 3)
    assert (shared == 198 + 98).all()


FIFTY = " ".join(f"w{i}" for i in range(50))
LOOPS = {
    f"{FIFTY} {FIFTY}": 0.5,
    f"{FIFTY} x {FIFTY} x": 0,  # a phrase has at most 50 tokens
    "": 0,
    "very very good": 0,
    "a man and a woman and a dog": 0,
    "one man , wearing a blue jacket , is kicking another man , wearing a red jacket .": 0,
    "what ! ! ! ! ! !": 0,
    "the man in the man in the man in the": 7 / 10,
    "no no no no": 3 / 4,
    "an electric electric electric electric guitar .": 3 / 7,
    "pants , pants , pants and boots": 3 / 7,
    "A man sleeps . a MAN sleeps . b": 4 / 9,
}


@pytest.mark.parametrize(("text", "expected"), LOOPS.items())
def test_loops_are_found_and_emphasis_is_none(text: str, expected: float) -> None:
    assert score([("no no no no", text)])["repetition"].tolist() == [np.float32(expected)]


@given(
    rows=st.lists(
        st.tuples(sentences, sentences, st.integers(0, 5), sentences).map(
            lambda of: f"{of[0]} {' '.join([of[1]] * of[2])} {of[3]}"
        ),
        min_size=1,
        max_size=9,
    ),
    language=st.sampled_from(["en", "ja"]),
)
@settings(max_examples=60)
def test_repetition_is_as_plainly_defined(rows: list[str], language: str) -> None:
    """Where letters are tokens, too."""
    least = 3
    if language == "ja":
        letters = dict(zip(WORDS, "犬が走る猫と見た、。", strict=True))
        rows = ["".join(letters[word] for word in row.split()) for row in rows]
        least = 6
    column = pa.array(rows, pa.string())
    text = PairText(column, column, language=language)
    tokens = [[*row] if language == "ja" else row.split() for row in rows]
    expected = np.array([plain_repetition(row, least) for row in tokens], np.float32)
    assert np.array_equal(repetition(text), expected)


def test_some_columns_alone() -> None:
    rows = [("a dog runs", "the dog runs"), ("cats", "dog")]
    whole = score(rows)
    opened: list[int] = []

    def opening() -> WordVectors:
        opened.append(1)
        return VECTORS

    scorer = PairScorer(NAMES, **{**TABLES, "paragram": partial(opening)})
    for columns in (["unigram_f1"], ["translation_tokens", "paragram_similarity"], NAMES[:2]):
        found = score(rows, scorer.only(columns))
        counts = {"reference_tokens", "translation_tokens"}
        expected = set(columns) | (counts if not counts.isdisjoint(columns) else set())
        assert set(found) == expected
        assert all(np.array_equal(found[name], whole[name]) for name in found)
    assert opened == [1]
    assert scorer.names == NAMES


def test_nothing_to_compare_scores_zero_and_never_nan() -> None:
    assert {len(values) for values in score([]).values()} == {0}
    rows = [("xyzzy", "a dog"), ("", "a dog"), ("", ""), ("xyzzy", "xyzzy"), ("a", "a xyzzy")]
    assert score(rows)["paragram_similarity"].tolist() == [0, 0, 0, 0, 1]
    zero = WordVectors(["a", "b", "c"], np.array([[0, 0], [1, 0], [-1, 0]], np.float32))
    found = score(
        [("a", "a"), ("b c", "b"), ("b", "c")], PairScorer(["paragram_similarity"], paragram=zero)
    )
    assert found["paragram_similarity"].tolist() == [0, 0, -1]


def test_unknown_words_count_as_the_file_says() -> None:
    rows = [("a xyzzy", "b"), ("xyzzy", "b")]
    paragram = WordVectors(["a", "b", UNKNOWN], np.array([[1, 0], [0, 1], [0, 1]], np.float32))
    idf = WordVectors(["a", "b"], np.array([[1], [4]], np.float32))  # left out: it has no row
    scorer = PairScorer(["paragram_similarity", "mean_idf"], paragram=paragram, idf=idf)
    found = score([*rows, ("xyzzy", "xyzzy")], scorer)
    np.testing.assert_allclose(found["paragram_similarity"], [np.sqrt(0.5), 0, 0])
    assert found["mean_idf"].tolist() == [2.5, 4, 0]


def plain_unmatched(sides: tuple[str, str], paragram: WordVectors) -> float:
    """Each word that the other side lacks, and its best cosine there, one by one."""
    units = dict(zip(paragram.words.to_pylist(), map(unit, paragram.matrix), strict=True))
    words = [[(content_stem(t), t) for t in side.split() if content_stem(t)] for side in sides]
    lost = 0.0
    for own, others in (words, words[::-1]):
        for stem, word in own:
            if stem not in dict(others):
                there = [units[w] for _, w in others if w in units]
                best = [float(units[word] @ of) for of in there] if word in units else []
                lost += 1 - max([0.0, *best])
    return lost


def unit(vector: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9))


@given(rows=columns, products=st.sampled_from([1, 5, 1 << 16]))
@settings(max_examples=60)
def test_unmatched_words_are_as_plainly_defined(rows: list[tuple[str, str]], products: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paraloom.models.scorers.tokens.unmatched_words._PRODUCTS", products)
        found = score(rows, PairScorer(["unmatched_words"], paragram=VECTORS))["unmatched_words"]
    expected = [plain_unmatched(row, VECTORS) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_unmatched_words_are_those_that_nothing_resembles() -> None:
    words = ["dog", "puppy", "runs", "red", UNKNOWN]
    matrix = np.array([[2, 0], [1.2, 1.6], [0, 3], [-1, 0], [1, 0]], np.float32)
    scorer = PairScorer(["unmatched_words"], paragram=WordVectors(words, matrix))
    cases = {
        ("a dog runs", "the dogs are running"): 0.0,  # inflection and function words
        ("dog", "puppy"): 0.8,  # 0.4 on each side
        ("red dog", "dog"): 1.0,  # dropped; a cosine below 0 counts 0
        ("dog", "dog dog"): 0.0,  # how often does not count
        ("dog", "xyzzy dog"): 1.0,  # without a vector, whatever the file says
        ("dog", "xyzzy"): 2.0,
        ("dog", ""): 1.0,
        ("the", "of"): 0.0,
    }
    found = score([*cases], scorer)["unmatched_words"]
    np.testing.assert_allclose(found, [*cases.values()], atol=1e-6)


def test_what_cannot_be_scored_is_said() -> None:
    long = pa.array(["a " * 32767, "a " * 32768])
    found = PairScorer(["length_ratio"]).score(long, pa.array(["a", "a"]))
    assert found["reference_tokens"].tolist() == [32767, 32767]
    assert found.reasons["reference_tokens"].tolist() == ["", "more than 32,767"]
    with pytest.raises(UserError, match="'bleu' is unknown: choose from content_overlap, "):
        PairScorer(["bleu"])
    for name, scorer in SCORERS.items():
        if scorer.resource:
            with pytest.raises(UserError, match=f"^{name} needs {scorer.resource.remedy}"):
                PairScorer([name])
    with pytest.raises(UserError, match="reference_score: the pairs have no source"):
        PairScorer(["reference_score"], **TABLES).score(*[pa.array(["a"])] * 2)
    with pytest.raises(UserError, match="one number per word, but the table has 5"):
        score([("a", "b")], PairScorer(["mean_idf"], idf=VECTORS))


def test_a_shared_resource_is_opened_once(tmp_path: Path, monkeypatch: Patch) -> None:
    opened: list[Path] = []

    def load(path: Path) -> WordVectors:
        opened.append(path)
        return load_vectors(path)

    write_vectors(tmp_path / "vectors.txt", VECTORS.words, VECTORS.matrix)
    for name in (names := ["paragram_similarity", "unmatched_words"]):
        resource = replace(PARAGRAM, open=load)
        monkeypatch.setitem(SCORERS, name, replace(SCORERS[name], resource=resource))
    scorer = PairScorer(names, paragram=tmp_path / "vectors.txt")
    assert opened == [tmp_path / "vectors.txt"]
    assert score([("a", "a")], scorer)["unmatched_words"].tolist() == [0]


def test_workers_need_no_torch() -> None:
    code = "import sys, paraloom.models.scorers; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
