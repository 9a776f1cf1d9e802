"""Evaluation sentences in texts, against the definition; the reasons that name them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.select import Criteria, decide
from paraloom.beam_jobs.transforms import exclusion
from paraloom.beam_jobs.transforms.duplicates import normalised
from paraloom.beam_jobs.transforms.exclusion import SENTENCES, EvaluationSentences, Exclusion
from tests.run_helpers import Patch
from tests.shards import filled

Found = set[tuple[int, int, int]]
"""Row, rule, sentence."""


def table(*texts: str) -> pa.Table:
    rows = list(range(1, len(texts) + 1))
    return pa.table({"data_set": ["a", *["b"] * (len(texts) - 1)], "row": rows, "text": texts})


def find(sentences: list[str], texts: list[str]) -> Found:
    given = pa.array(texts, pa.string())
    found = EvaluationSentences(table(*sentences)).find(given, normalised(given))
    return {
        (int(row), rule, int(sentence))
        for rule, which in enumerate(found)
        for row, sentence in zip(*which.nonzero(), strict=True)
    }


def grams(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


def by_definition(sentences: list[str], texts: list[str]) -> Found:
    found: Found = set()
    for row, text in enumerate(texts):
        for number, sentence in enumerate(sentences):
            if text.lower() == sentence.lower():
                found.add((row, 0, number))
            shorter = min(len(grams(text)), len(grams(sentence)))
            if shorter and 10 * len(grams(text) & grams(sentence)) >= 7 * shorter:
                found.add((row, 1, number))
    return found


WORDS = st.lists(st.sampled_from("a B c d".split()), min_size=1, max_size=14).map(" ".join)  # noqa: SIM905


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8), st.lists(WORDS | st.just(""), max_size=8))
@pytest.mark.parametrize("most", [1, 1 << 24])
def test_it_finds_what_the_definition_says(
    most: int, sentences: list[str], texts: list[str]
) -> None:
    """Also in small blocks, for sentences with many others in common."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exclusion, "_MOST", most)
        assert find(sentences, texts) == by_definition(sentences, texts)


@pytest.mark.parametrize(
    ("sentence", "text", "rules"),
    [
        ("A dog runs.", "a DOG, runs", [0]),
        ("Café ﬁve dogs", "cafe\u0301 five  dogs!", [0]),
        ("A dog runs.", "now a dog runs", []),
        ("猫はIBMを見ます", "黒い猫はIBMを見ますよ", [1]),
        ("猫はIBMを見ます", "猫は犬を見ます", []),
    ],
)
def test_what_counts_as_the_same_sentence(sentence: str, text: str, rules: list[int]) -> None:
    found = {rule for _, rule, _ in find([sentence], [text])}
    assert min(found, default=None) == min(rules, default=None)


class Letters:
    """A model whose vectors count three letters."""

    device = SimpleNamespace(type="cpu")

    def __init__(self, letters: str) -> None:
        self.letters = letters

    def encode(self, texts: list[str], **_: Any) -> np.ndarray:
        found = [[text.lower().count(letter) for letter in self.letters] for text in texts]
        counts = np.array(found, float).reshape(-1, 3)
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        return np.asarray(counts / np.maximum(norms, 1e-9))


def test_similar_sentences_have_a_higher_cosine_than_the_bound(monkeypatch: Patch) -> None:
    model: Any = Letters("abc")
    texts = pa.array(["aab", "b", "c", "b"])
    vectors = exclusion.embed(model, pa.array(["ab", "aaab", "c"]))
    for most in (1, 1 << 24):
        monkeypatch.setattr(exclusion, "_MOST", most)
        sentences = EvaluationSentences(table("ab", "aaab", "c"), (model, vectors, 0.95))
        *_, found = sentences.find(texts, texts)
        cosines = exclusion.embed(model, texts) @ vectors.T
        assert ((found.toarray() != 0) == (cosines > 0.95)).all()


def test_a_pair_with_an_evaluation_sentence_is_rejected(tmp_path: Path, monkeypatch: Patch) -> None:
    """With the first rule that holds, of either side; a similar one only if no other rule does."""
    sentences = table("Short one.", "a dog runs in the snow", "abc")
    pq.write_table(sentences, tmp_path / SENTENCES)
    model: Any = Letters("abc")
    np.save(tmp_path / "vectors.npy", exclusion.embed(model, sentences["text"].combine_chunks()))
    monkeypatch.setattr(exclusion, "open_sentence_model", lambda path: model)
    pairs = [
        ("fine b", "well b", 3, ""),
        ("short ONE", "another b", 3, "in a (equal), row 1"),
        ("other b", "Oh, a dog runs in the snow.", 3, "in b (n-grams), row 2"),
        ("cab", "b", 3, "in b (similarity), row 3"),
        ("short one", "short one!", 3, "both sides are the same"),
        ("not selected", "short one", 99, "more tokens than max_tokens"),
    ]
    names = ("reference", "translation", "reference_tokens")
    rows = filled([dict(zip(names, pair, strict=False)) for pair in pairs], schema.scored(()))
    exclude = Exclusion(folder=str(tmp_path), digest="1", similarity=0.99, model="letters")
    criteria = Criteria(by="x", deciles=None, max_tokens=9, size=None, seed=1, exclude=exclude)
    found, hashes = decide(rows, criteria)
    assert found.tolist() == [reason for *_, reason in pairs]
    assert len(hashes) == 1


def test_passes_over_the_same_texts_embed_them_once(tmp_path: Path, monkeypatch: Patch) -> None:
    """Other texts, another bound and a damaged file are another matter."""
    sentences = table("abc")
    pq.write_table(sentences, tmp_path / SENTENCES)
    model: Any = Letters("abc")
    np.save(tmp_path / "vectors.npy", exclusion.embed(model, sentences["text"].combine_chunks()))
    monkeypatch.setattr(exclusion, "open_sentence_model", lambda path: model)
    embedded: list[list[str]] = []
    own = model.encode

    def encode(texts: list[str], **options: Any) -> np.ndarray:
        embedded.append(texts)
        return np.asarray(own(texts, **options))

    model.encode = encode
    texts = pa.array(["x", "cab", "b", "", "bca", "b"])

    def reasons(rows: pa.Array, similarity: float = 0.99) -> list[str]:
        exclude = Exclusion(
            folder=str(tmp_path),
            digest="2",
            similarity=similarity,
            model="letters",
            kept=str(tmp_path / "kept"),
        )
        found: list[str] = exclude.reasons([rows, rows], [normalised(rows)] * 2).tolist()
        return found

    expected = ["", "in a (similarity), row 1", "", "", "in a (similarity), row 1", ""]
    assert reasons(texts) == reasons(texts) == expected
    assert len(embedded) == 2  # the two sides
    assert reasons(texts[1:4]) == reasons(texts[1:4]) == expected[1:4]
    assert reasons(pa.array(["xc", "ab"])) == ["", ""]  # the letters of "x", "cab"
    assert reasons(texts, -1.0) == ["in a (similarity), row 1"] * 6
    assert len(embedded) == 8
    for file in (tmp_path / "kept").iterdir():
        file.write_bytes(file.read_bytes()[:3])
    assert reasons(texts) == expected
    assert len(embedded) == 10
