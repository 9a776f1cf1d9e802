import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paraloom.models.embeddings.ragged_columns import RaggedIds, fingerprints, join, take
from tests.models.embeddings.encoders.test_encoders import flat

sentences = st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=8)


def rows(flat: RaggedIds) -> list[list[int]]:
    return [flat.ids[a:b].tolist() for a, b in zip(flat.offsets, flat.offsets[1:], strict=False)]


@given(sentences, st.data())
def test_take(lists: list[list[int]], data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, len(lists) - 1))) if lists else []
    assert rows(take(flat(lists), np.array(index, np.int64))) == [lists[i] for i in index]


@given(st.lists(sentences, max_size=3))
def test_join(parts: list[list[list[int]]]) -> None:
    assert rows(join([flat(part) for part in parts])) == [row for part in parts for row in part]


@given(sentences)
def test_fingerprints_tell_sentences_apart(lists: list[list[int]]) -> None:
    found = fingerprints(flat(lists))
    for i, a in enumerate(lists):
        for j, b in enumerate(lists):
            assert (found[i] == found[j]) == (a == b)
