import gzip
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mosestokenizer import MosesTokenizer

from paraloom.models.text.tokens import _PLAIN, PairText, moses_tokens
from tests.sample import odd_sentences

MOSES = MosesTokenizer("en")
MARKS = st.sampled_from(["", "", "", ",", ".", " .", "?", "!", " ?", "...", "'s", "'", '"', ")"])
# fmt: off
WORDS = st.sampled_from([
    "a", "I", "dog", "THE", "U.S", "Mr", "vs", "rev", "v", "no", "No", "pp", "Comdr", "Messrs",
    "don't", "O'Neil", "l'a", "t-shirt", "re-e's", "30", "007", "3.5", "1,000", "http://a.b/c?d=e",
    "Jan", "e@x.com", "&amp;", "&", "<b>", "[x]", "straße", "Žluť", "日本", "x².", "-", "--", "'s",
    "`a", "n't", "cannot",
])
# fmt: on
SENTENCES = st.lists(st.tuples(WORDS, MARKS).map("".join), max_size=12).map(" ".join)


def one_by_one(texts: list[str], lower: bool = False) -> list[list[str]]:
    return [[t.lower() if lower else t for t in MOSES.tokenize(text)] for text in texts]


@given(st.lists(SENTENCES, max_size=20))
@settings(max_examples=150)
def test_a_column_is_tokenised_as_moses_does_row_by_row(texts: list[str]) -> None:
    column = pa.array(texts, pa.string())
    assert moses_tokens(column, lower=False).to_pylist() == one_by_one(texts)


@given(st.from_regex(_PLAIN, fullmatch=True))
@settings(max_examples=50)
def test_plain_text_needs_no_more_than_spaces_before_marks(text: str) -> None:
    assert moses_tokens(pa.array([text]), lower=False).to_pylist() == one_by_one([text])


def test_real_text_agrees_with_moses(data: Path) -> None:
    texts = gzip.decompress((data / "multi30k/train.en.gz").read_bytes()).decode().splitlines()
    novel = (data / "books/holmes.txt").read_text(encoding="utf-8").split("\n\n")[:1500]
    column = pa.array(texts)
    assert moses_tokens(column, lower=False).to_pylist() == one_by_one(texts)
    assert moses_tokens(pa.array(novel), lower=False).to_pylist() == one_by_one(novel)
    # Most captions never reach the C++ tokeniser, and the test above covers those that do.
    assert 0.9 < pc.mean(pc.match_substring_regex(column, _PLAIN)).as_py() < 1


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n", []),
        (None, []),
        ('He: "A & B <C|D>"', ["he", ":", '"', "a", "&", "b", "<", "c", "|", "d", ">", '"']),
        ("one\ntwo\r\nthree\x00four", ["one", "two", "three", "four"]),
        ("no\u00a0break\u2003space", ["no", "break", "space"]),
        ("ŽLUŤOUČKÝ Kůň", ["žluťoučký", "kůň"]),
    ],
)
def test_tokens_are_plain_lower_case_characters(text: str | None, tokens: list[str]) -> None:
    column = pa.array([text, "x"], pa.string())
    assert moses_tokens(column).to_pylist() == [tokens, ["x"]]


def test_every_kind_of_column_is_taken() -> None:
    rows = ["a b", "", "c"]
    expected = [["a", "b"], [], ["c"]]
    assert moses_tokens(pa.chunked_array([rows[:1], rows[1:]])).to_pylist() == expected
    assert moses_tokens(pa.array(rows, pa.large_string())).to_pylist() == expected
    assert moses_tokens(pa.array(["z", *rows])[1:]).to_pylist() == expected
    assert moses_tokens(pa.array(["z", *rows], pa.large_string())[1:]).to_pylist() == expected
    assert moses_tokens(pa.array([], pa.string())).to_pylist() == []


def test_threads_share_the_tokeniser() -> None:
    texts = odd_sentences(3000)
    column = pa.array(texts)
    with ThreadPoolExecutor(4) as pool:
        results = [*pool.map(moses_tokens, [column] * 4)]
    assert all(found.equals(moses_tokens(column)) for found in results)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), max_size=12))
def test_numbered_tokens_are_the_tokens(rows: list[str]) -> None:
    reference, translation = (pa.array([r[side] for r in rows], pa.string()) for side in (0, 1))
    pairs = PairText(reference, translation)
    vocabulary = np.array(pairs.vocabulary.to_pylist(), object)
    assert len(set(vocabulary)) == len(vocabulary)
    for text, tokens in ((reference, pairs.reference), (translation, pairs.translation)):
        expected = one_by_one(text.to_pylist(), lower=True)
        assert tokens.lengths.tolist() == list(map(len, expected))
        found = [vocabulary[ids].tolist() for ids in np.split(tokens.ids, tokens.offsets[1:-1])]
        assert found[: len(rows)] == expected
        assert tokens.rows.tolist() == [r for r, row in enumerate(expected) for _ in row]
