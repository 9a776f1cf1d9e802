import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence

from paraloom.models.embeddings.encoders.prefix_trie import build_trie
from tests.models.embeddings.encoders.test_encoders import flat

batches = st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=9)


@given(batches, st.booleans())
def test_nodes_are_the_different_beginnings(sentences: list[list[int]], backward: bool) -> None:
    trie = build_trie(*flat(sentences), backward=backward)
    beginnings: list[tuple[int, ...]] = []  # of every node, spelt out by way of its parents
    for level, (start, end) in enumerate(zip(trie.starts, trie.starts[1:], strict=False)):
        for node in range(start, end):
            before = beginnings[trie.parents[node]] if level else ()
            beginnings.append((*before, trie.rows[node]))
            assert len(beginnings[-1]) == level + 1
    read = [sentence[::-1] if backward else sentence for sentence in sentences]
    expected = {tuple(words[:i]) for words in read for i in range(1, len(words) + 1)}
    assert len(beginnings) == len(expected) and set(beginnings) == expected
    paths = iter(trie.paths)
    for sentence, words, last in zip(sentences, read, trie.ends, strict=True):
        lengths = range(1, len(sentence) + 1)
        for length in reversed(lengths) if backward else lengths:
            assert beginnings[next(paths)] == tuple(words[:length])
        assert beginnings[last] == tuple(words) if words else last == -1


@given(batches)
def test_siblings_stand_together(sentences: list[list[int]]) -> None:
    trie = build_trie(*flat(sentences))
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
