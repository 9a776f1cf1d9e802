"""Evaluation sentences in texts, against the definition; the reasons that name them."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import beam_options, run_pipeline
from paraloom.beam_jobs.engine.shards import remove_orphans
from paraloom.beam_jobs.storage.clients import store
from paraloom.beam_jobs.transforms import duplicates, exclusion
from paraloom.beam_jobs.transforms.criteria import Criteria, decide
from paraloom.beam_jobs.transforms.duplicates import (
    WithDuplicates,
    read_hashes,
    together,
    write_hashes,
)
from paraloom.beam_jobs.transforms.equal_texts import normalised, repeated, row_hash
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
def test_it_finds_what_is_defined(most: int, sentences: list[str], texts: list[str]) -> None:
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
        ("a b c d e f g h i j k l m n", "a b c d e f g h i j k x y z", [1]),  # 7 of 10 n-grams
        ("a b c d e f g h i j k l m n", "a b c d e f g h i j w x y z", []),  # 6
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
        counts = np.array(found, float)  # of no texts: [0], as sentence-transformers gives
        if not texts:
            return counts
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
        assert [of.shape for of in sentences.find(texts[:0], texts[:0])] == [(0, 3)] * 3


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


small = st.lists(st.lists(st.text("ab", max_size=2), max_size=12), max_size=6)


def plain(shards: list[list[str]]) -> set[tuple[int, int]]:
    """(unit, row) of every text that stands before: the definition."""
    seen, found = set(), set()
    for unit, texts in enumerate(shards):
        for row, text in enumerate(texts):
            if text in seen:
                found.add((unit, row))
            seen.add(text)
    return found


@given(small, st.randoms(use_true_random=False))
def test_repeats_are_those_of_a_set_in_any_order(shards: list[list[str]], random: Random) -> None:
    places = [(unit, row) for unit, texts in enumerate(shards) for row in range(len(texts))]
    random.shuffle(places)
    hashes = row_hash(pa.array([shards[unit][row] for unit, row in places], pa.string()))
    units, rows = np.array(places, int).reshape(-1, 2).T
    found = repeated(hashes, units, rows)
    assert {place for place, again in zip(places, found, strict=True) if again} == plain(shards)


def test_all_128_bits_count_and_columns_are_not_run_together() -> None:
    hashes = np.array([[1, 2], [1, 3], [2, 3], [1, 2], [3, 2]], np.uint64)
    assert repeated(hashes, np.zeros(5, int), np.arange(5)).tolist() == [0, 0, 0, 1, 0]
    one, other = row_hash(pa.array(["ab", "a"]), pa.array(["c", "bc"]))
    assert (one != other).any()


def test_partitions_make_no_difference(monkeypatch: Patch, stored: tuple[str, list[str]]) -> None:
    place, options = stored
    random = np.random.default_rng(3)
    shards = [[f"text {i}" for i in random.integers(0, 60, 40)] for _ in range(5)]
    units = [SimpleNamespace(index=unit, texts=texts) for unit, texts in enumerate(shards)]

    def hashes(unit: SimpleNamespace) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        yield row_hash(pa.array(unit.texts)), np.arange(len(unit.texts))

    wanted = plain(shards)

    def check(found: list[tuple[SimpleNamespace, NDArray[np.int64]]]) -> None:
        assert {(unit.index, int(row)) for unit, rows in found for row in rows} == wanted
        assert len(found) == len(units)
        assert sum(len(rows) for _, rows in found) == len(wanted)

    for partitions in (1, 7):
        monkeypatch.setattr(duplicates, "_ROWS_PER_PARTITION", 200 // partitions)
        find = WithDuplicates(hashes, 200 - 1, place)

        def build(root: Any, find: WithDuplicates = find) -> Any:
            found = root | beam.Create(units) | find
            assert_that(found, check)
            return found

        run_pipeline(build, beam_options(["--direct_num_workers", "1", *options]))
    assert len(storage.names(f"{place}/_hashes")) == 2 * len(units)
    remove_orphans(place, [])
    assert storage.names(f"{place}/_hashes") == []


def test_a_partition_is_one_request(stored: tuple[str, list[str]], monkeypatch: Patch) -> None:
    place, fetched = stored[0], list[int]()
    hashed = row_hash(pa.array(map(str, range(900)))), np.arange(900)
    parts = list(write_hashes(f"{place}/1", 1, [hashed], 9))
    kind = type(store(place)[0])

    def read(*of: Any, read: Any = kind.read) -> bytes:
        data: bytes = read(*of)
        fetched.append(len(data))
        return data

    monkeypatch.setattr(kind, "read", read)
    monkeypatch.setattr(kind, "size", None)  # another request
    for partition, where in parts:
        ((_, found, _),) = read_hashes([where])
        assert (found[:, 0] % 9 == partition).all() and len(found) == where[-1]
    assert fetched == [24 * rows for _, (*_, rows) in parts] and sum(fetched) == 900 * 24


def test_no_hashes_are_shuffled(tmp_path: Path) -> None:
    path = str(tmp_path / "7")
    blocks = [row_hash(pa.array([f"{block} {i}" for i in range(500)])) for block in range(3)]
    rows = [np.arange(500) + 500 * block for block in range(3)]
    found = list(write_hashes(path, 7, zip(blocks, rows, strict=True), 4))
    assert len(pickle.dumps(found)) < 1000
    assert {unit for _, (unit, *_) in found} == {7}
    for partition in range(4):
        groups = [where for number, where in found if number == partition]
        hashes, _, at = together(read_hashes(groups))
        assert (hashes[:, 0] % 4 == partition).all()
        assert np.array_equal(hashes, np.concatenate(blocks)[at])
    assert sum(rows for _, (*_, rows) in found) == 1500
    assert list(write_hashes(str(tmp_path / "8"), 8, [], 4)) == []
