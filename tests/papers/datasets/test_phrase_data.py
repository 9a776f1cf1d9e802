"""Which phrase pairs are learnt from, and which are kept for tests."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.papers.datasets.phrases import PhrasePairs, read_phrase_pairs, split, usable
from tests.run_helpers import Patch

PPDB = """\
[NP] ||| a big dog ||| a large dog ||| p(e|f)=1.2 p(f|e)=2 ||| 0-0 1-1 2-2
[NP] ||| a large dog ||| a big dog ||| p(e|f)=1.2 p(f|e)=2 ||| 0-0 1-1 2-2
[NN] ||| dog ||| hound ||| p(e|f)=1
[NN] ||| dog ||| the hound ||| p(e|f)=1
[X] ||| Two men ||| two men ||| p(e|f)=1
[X] ||| 7 men ||| seven men ||| p(e|f)=1
[X] ||| it 's ||| it is ||| p(e|f)=1
[X] ||| dvě ženy ||| ženy ||| p(e|f)=1
"""


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def rows(pairs: PhrasePairs) -> list[tuple[str, str]]:
    return list(zip(pairs.left.to_pylist(), pairs.right.to_pylist(), strict=True))


@pytest.mark.parametrize("block", [1, 20_000])
def test_the_paper_s_filter(tmp_path: Path, block: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.models.embeddings.datasets.phrases._ROWS", block)
    table = write(tmp_path / "ppdb.gz", PPDB)
    found = [("a big dog", "a large dog"), ("dog", "the hound"), ("dvě ženy", "ženy")]
    assert rows(read_phrase_pairs(table)) == found
    known = pa.array(["a", "big", "large", "dog", "the"])
    assert rows(read_phrase_pairs(table, known)) == [("a big dog", "a large dog")]


phrase = st.lists(st.sampled_from(["a", "b", "c3", "d", "-"]), min_size=1, max_size=3)


@given(st.lists(st.tuples(phrase.map(" ".join), phrase.map(" ".join)), min_size=1))
def test_filter_row_by_row(pairs: list[tuple[str, str]]) -> None:
    left, right = (pa.array(side) for side in zip(*pairs, strict=True))
    expected = [
        (a, b)
        for a, b in pairs
        if a != b
        and all(word.isalpha() and word != "d" for word in f"{a} {b}".split(" "))
        and (" " in a or " " in b)
    ]
    assert rows(usable(PhrasePairs(left, right), pa.array(["a", "b", "c3", "-"]))) == expected


def numbered(count: int) -> PhrasePairs:
    left = pa.array([f"w{i} x" for i in range(count)])
    return PhrasePairs(left, pa.array([f"w{i // 3} y" for i in range(count)]))


def test_pairs_are_split_80_10_10() -> None:
    pairs = numbered(5000)
    parts = split(pairs, 0.1)
    assert sum(map(len, parts)) == 5000
    assert len({row for part in parts for row in rows(part)}) == 5000
    shares = [len(part) / 5000 for part in parts]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.015)
    some = pairs.take(np.arange(0, 5000, 7))  # what is left out depends only on the pair's text
    assert set(rows(split(some, 0.1).test)) == set(rows(some)) & set(rows(parts.test))
    assert [len(part) for part in split(pairs, 0.0)] == [5000, 0, 0]


def test_split_by_phrases_test_pairs_have_a_phrase_that_training_has_not() -> None:
    pairs = numbered(3000)
    train, development, test = split(pairs, 0.1, "phrases")
    assert len(train) + len(development) + len(test) == 3000 and 0.15 < len(test) / 3000 < 0.23
    seen = set(train.phrases().to_pylist())
    assert all(not {a, b} <= seen for part in (test, development) for a, b in rows(part))
    assert rows(split(pairs, 0.1, "phrases").test) == rows(test)
    assert len(split(pairs, 0.0, "phrases").test) == 0
