import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence

from paraloom.models.embeddings import vocabulary as module
from paraloom.models.embeddings.encoders.prefix_trie import build_trie
from paraloom.models.embeddings.ragged_columns import Kind, fingerprints, join, take
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError
from paraloom.models.text.tokens import PairText, moses_tokens
from tests.models.embeddings.encoders.test_encoders import flat, rows_of
from tests.run_helpers import Patch
from tests.sample import odd_sentences
from tests.small_encoder import vocabulary_of


def column(lines: list[str]) -> pa.StringArray:
    return pa.array(lines, pa.string())


def tokens_of(line: str) -> list[str]:
    (tokens,) = moses_tokens(column([line]), lower=True).to_pylist()
    return list(tokens)


def trigrams_of(line: str) -> list[str]:
    padded = [f" {token} " for token in tokens_of(line)]
    return [word[i : i + 3] for word in padded for i in range(len(word) - 2)]


def sentence_trigrams_of(line: str) -> list[str]:
    padded = f" {' '.join(tokens_of(line))} "
    return [padded[i : i + 3] for i in range(len(padded) - 2)]


PARTS: dict[Kind, Callable[[str], list[str]]] = {
    "words": tokens_of,
    "trigrams": trigrams_of,
    "sentence-trigrams": sentence_trigrams_of,
}


def decoded(vocabulary: Vocabulary, lines: list[str]) -> list[list[str]]:
    flat = vocabulary.ids(column(lines))
    assert flat.ids.dtype == np.int32
    assert flat.offsets.dtype == np.int64
    return [[vocabulary.words[i] for i in row] for row in rows_of(flat)]


def test_tags_stand_around_every_sentence_and_cannot_be_written_in_text() -> None:
    vocabulary = Vocabulary(["a", "<s>", "s"], kind="words", tags=True)
    unknown = ["<s>", "a", "<unk>", "<unk>", "s", "<unk>", "</s>"]
    assert decoded(vocabulary, ["a </s>", ""]) == [unknown, ["<s>", "</s>"]]
    assert vocabulary.ids(column(["", "a"])).ids.tolist() == [1, 2, 1, 3, 2]


@pytest.mark.parametrize("kind", PARTS)
@settings(max_examples=30)
@given(known=st.lists(st.text(max_size=30)), lines=st.lists(st.text(max_size=40), min_size=1))
def test_ids_equal_a_lookup_token_by_token(kind: Kind, known: list[str], lines: list[str]) -> None:
    vocabulary = vocabulary_of([column(known)], kind=kind)
    index = {word: i for i, word in enumerate(vocabulary.words[1:], 1)}
    parts = PARTS[kind]
    flat = vocabulary.ids(column(lines))
    assert rows_of(flat) == [[index.get(part, 0) for part in parts(line)] for line in lines]
    assert flat.lengths.tolist() == [len(parts(line)) for line in lines]


def test_the_same_tokens_everywhere() -> None:
    """In scores as in the ids of trainings and evaluations."""
    first, second = (column(odd_sentences(900)[side::2]) for side in (0, 1))
    vocabulary, scored = vocabulary_of([first, second]), PairText(first, second)
    for text, tokens in ((first, scored.reference), (second, scored.translation)):
        words = [vocabulary.words[i] for i in vocabulary.ids(text).ids]
        assert words == scored.vocabulary.take(pa.array(tokens.ids)).to_pylist()


@pytest.mark.parametrize("kind", PARTS)
def test_how_the_corpus_is_cut_into_batches_changes_nothing(kind: Kind, monkeypatch: Patch) -> None:
    lines = odd_sentences(1000)
    whole = vocabulary_of([column(lines)], kind=kind)
    monkeypatch.setattr(module, "_MERGE_AT", 300)
    cut = vocabulary_of((column(lines[i : i + 37]) for i in range(0, len(lines), 37)), kind=kind)
    assert cut.words == whole.words
    parts = PARTS[kind]
    counts = Counter(part for line in lines for part in parts(line))
    assert whole.words[0] == "<unk>"
    assert whole.words[1:] == sorted(counts, key=lambda part: (-counts[part], part))


def test_counting_forgets_the_rarest_when_there_are_too_many(monkeypatch: Patch) -> None:
    monkeypatch.setattr(module, "_MERGE_AT", 1)
    monkeypatch.setattr(module, "_MAX_DISTINCT", 10)
    batches = (column([f"often often w{i}"]) for i in range(100))
    vocabulary = vocabulary_of(batches, kind="words")
    assert vocabulary.words[1] == "often"
    assert len(vocabulary) <= 1 + 10 + 2


@pytest.mark.parametrize("tags", [False, True, "start", "end"])
@pytest.mark.parametrize("kind", PARTS)
def test_saved_and_loaded(tmp_path: Path, kind: Kind, tags: Any) -> None:
    odd = ["a\u0085b", "\u2028", "\r", "\u00a0x", "#", "🙂", "a b "]
    entries = odd if kind == "words" else [(word + "zzz")[:3] for word in odd]
    vocabulary = Vocabulary(entries, kind=kind, tags=tags)
    vocabulary.save(tmp_path / "vocabulary.txt")
    again = Vocabulary.load(tmp_path / "vocabulary.txt")
    assert (again.words, again.kind, again.tags) == (vocabulary.words, kind, tags)
    text = column(["🙂 # 🙂zz", "x"])
    assert again.ids(text).ids.tolist() == vocabulary.ids(text).ids.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw.replace(b"dog", b"dig"), "changed since it was written"),
        (lambda raw: b"cat\ndog\n", "not a vocabulary"),
    ],
)
def test_damage_is_named(tmp_path: Path, change: Callable[[bytes], bytes], message: str) -> None:
    path = tmp_path / "vocabulary.txt"
    Vocabulary(["cat", "dog"]).save(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=f"{path}: .*{message}"):
        Vocabulary.load(path)


sentences = st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=9)


@given(sentences, st.data())
def test_take(lists: list[list[int]], data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(lists) - 1))) if lists else []
    assert rows_of(take(flat(lists), np.array(index, np.int64))) == [lists[i] for i in index]


@given(st.lists(sentences, max_size=3))
def test_join(parts: list[list[list[int]]]) -> None:
    assert rows_of(join([flat(part) for part in parts])) == [row for part in parts for row in part]


@given(sentences)
@example([[1, 2], [2, 1]])
def test_fingerprints_tell_sentences_apart(lists: list[list[int]]) -> None:
    found = fingerprints(flat(lists))
    for i, a in enumerate(lists):
        for j, b in enumerate(lists):
            assert (found[i] == found[j]) == (a == b)


@given(sentences, st.booleans())
def test_nodes_are_the_different_beginnings(lists: list[list[int]], backward: bool) -> None:
    trie = build_trie(*flat(lists), backward=backward)
    beginnings: list[tuple[int, ...]] = []  # of every node, spelt out by way of its parents
    for level, (start, end) in enumerate(zip(trie.starts, trie.starts[1:], strict=False)):
        for node in range(start, end):
            before = beginnings[trie.parents[node]] if level else ()
            beginnings.append((*before, trie.rows[node]))
            assert len(beginnings[-1]) == level + 1
    read = [sentence[::-1] if backward else sentence for sentence in lists]
    expected = {tuple(words[:i]) for words in read for i in range(1, len(words) + 1)}
    assert len(beginnings) == len(expected) and set(beginnings) == expected
    paths = iter(trie.paths)
    for sentence, words, last in zip(lists, read, trie.ends, strict=True):
        lengths = range(1, len(sentence) + 1)
        for length in reversed(lengths) if backward else lengths:
            assert beginnings[next(paths)] == tuple(words[:length])
        assert beginnings[last] == tuple(words) if words else last == -1


@given(sentences)
def test_siblings_stand_together(lists: list[list[int]]) -> None:
    trie = build_trie(*flat(lists))
    for start, end in zip(trie.starts[1:], trie.starts[2:], strict=False):
        assert (np.diff(trie.parents[start:end]) >= 0).all()


@pytest.mark.parametrize("share", [True, False])
def test_a_long_sentence_needs_memory_only_for_its_own_words(share: bool) -> None:
    sentences = [[1, 2, 3]] * 1000 + [[5] * 30_000]
    tracemalloc.start()
    try:
        trie = build_trie(*flat(sentences), share=share)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(trie.starts) == 30_001 and peak < 20e6


@pytest.mark.parametrize("seed", range(3))
def test_unshared_it_is_torch_s_packed_sequence(seed: int) -> None:
    random = np.random.default_rng(seed)
    sentences = [random.integers(0, 3, random.integers(1, 6)).tolist() for _ in range(9)]
    trie = build_trie(*flat(sentences), share=False)
    longest_first = sorted(sentences, key=len, reverse=True)
    packed = pack_sequence([torch.tensor(sentence) for sentence in longest_first])
    assert packed.data.tolist() == trie.rows.tolist()
    assert packed.batch_sizes.tolist() == np.diff(trie.starts).tolist()
