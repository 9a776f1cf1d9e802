"""Sentences of unequal lengths in one array, and the trie of their beginnings."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence

from paraloom.models.embeddings.encoders.prefix_trie import build_trie
from paraloom.models.embeddings.ragged_columns import fingerprints, join, take
from tests.models.embeddings.encoders.test_encoders import flat, rows_of

sentences = st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=9)


@given(sentences, st.data())
def test_take(lists: list[list[int]], data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(lists) - 1))) if lists else []
    assert rows_of(take(flat(lists), np.array(index, np.int64))) == [lists[i] for i in index]


@given(st.lists(sentences, max_size=3))
def test_join(parts: list[list[list[int]]]) -> None:
    assert rows_of(join([flat(part) for part in parts])) == [row for part in parts for row in part]


@given(sentences)
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


@pytest.mark.parametrize("seed", range(3))
def test_unshared_it_is_torch_s_packed_sequence(seed: int) -> None:
    random = np.random.default_rng(seed)
    sentences = [random.integers(0, 3, random.integers(1, 6)).tolist() for _ in range(9)]
    trie = build_trie(*flat(sentences), share=False)
    longest_first = sorted(sentences, key=len, reverse=True)
    packed = pack_sequence([torch.tensor(sentence) for sentence in longest_first])
    assert packed.data.tolist() == trie.rows.tolist()
    assert packed.batch_sizes.tolist() == np.diff(trie.starts).tolist()
