import math
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from paraloom.models.text.idf import count_words, idf_table, merge_counts
from paraloom.models.text.vectors import UNKNOWN, compact_vectors, open_vectors, write_vectors

TEXTS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6).map(" ".join), max_size=12)


@given(TEXTS, st.integers(0, 12))
def test_counts_of_parts_add_up(texts: list[str], cut: int) -> None:
    parts = [count_words(pa.array(part, pa.string())) for part in (texts[:cut], texts[cut:])]
    merged, turned = merge_counts(parts), merge_counts(parts[::-1])
    documents = Counter(word for text in texts for word in set(text.split()))
    occurrences = Counter(word for text in texts for word in text.split())
    assert merged.documents == len(texts)
    assert merged.table.to_pylist() == [
        {"word": w, "documents": documents[w], "occurrences": occurrences[w]}
        for w in sorted(documents)
    ]
    assert merged.table.equals(turned.table)


def test_the_table_survives_its_file(tmp_path: Path) -> None:
    counts = count_words(pa.array(["A dog , a cat", "a dog 7", "a 7"]))
    table = idf_table(counts)
    write_vectors(tmp_path / "idf.txt", table.words, table.matrix)
    compact_vectors(tmp_path / "idf.txt", tmp_path / "compact")
    for read in (table, open_vectors(tmp_path / "compact")):
        assert set(read.words.to_pylist()) == {UNKNOWN, "a", "dog", ",", "cat", "7"}
        found = read.at(read.rows(["a", "dog", "cat", "bird"]))[:, 0]
        expected = [math.log(4 / (1 + count)) for count in (3, 2, 1, 0)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
