import bz2
import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from paraloom.models.errors import UserError
from paraloom.models.text.idf import count_words, merge_counts
from paraloom.models.text.vectors import (
    UNKNOWN,
    WordVectors,
    compact_vectors,
    open_vectors,
    read_vectors,
    write_vectors,
)
from tests.run_helpers import Patch, refuses

TEXT = "the 0.5 -1.25\ncat 1e-3 2\n. 3 4\n"
MATRIX = np.array([[0.5, -1.25], [1e-3, 2], [3, 4]], np.float32)
WORDS = ["the", "d'être", "日本", "a_b", "0.5"]
VALUES = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)


def binary(words: list[str], matrix: np.ndarray, end: bytes = b"\n") -> bytes:
    """word2vec's binary form."""
    values = (row.astype("<f4").tobytes() for row in matrix)
    rows = (w.encode() + b" " + row + end for w, row in zip(words, values, strict=True))
    return f"{len(words)} {matrix.shape[1]}\n".encode() + b"".join(rows)


def read(tmp_path: Path, text: str | bytes, name: str = "vectors.txt") -> WordVectors:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_vectors(path)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "3 2\n" + TEXT,  # word2vec's first line
        TEXT.replace("\n", " \n"),  # word2vec's spaces at line ends
        ("3 2\n" + TEXT).replace("\n", " \r\n"),
        TEXT.replace(" ", "\t"),
        TEXT.replace("\n", "\n\n"),
        "\n".join(f" {line}".replace(" ", "  ", 2) for line in TEXT.splitlines()),
        gzip.compress(TEXT.encode(), mtime=0),
        "\ufeff3 2\n" + TEXT,
        gzip.compress(("3 2\n" + TEXT).encode("utf-16"), mtime=0),
        bz2.compress(b"\xef\xbb\xbf" + TEXT.encode()),
    ],
)
def test_every_published_text_form(tmp_path: Path, text: bytes | str) -> None:
    vectors = read(tmp_path, text)
    assert vectors.words.to_pylist() == ["the", "cat", "."]
    assert vectors.matrix.dtype == np.float32 and np.array_equal(vectors.matrix, MATRIX)
    assert (len(vectors), vectors.dim) == (3, 2)


def test_words_are_only_words(tmp_path: Path) -> None:
    words = ['"', "nan", "NULL", "é", "日本", "1.5", "#", "-inf", "a\u00a0b", "'s"]
    vectors = read(tmp_path, "".join(f"{word} 1 2\n" for word in words))
    assert vectors.words.to_pylist() == words
    assert vectors.rows(words).tolist() == list(range(len(words)))
    spaced = read(tmp_path, "the 1 2\nat name@domain.com 3 4\n")
    assert spaced.words.to_pylist() == ["the", "at name@domain.com"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "has no word vectors"),
        ("0 2\n", "has no word vectors"),
        ("4 2\n" + TEXT, "line 1 announces 4 words, but there are 3"),
        ("3 3\n" + TEXT, r"word 1: b'the 0.5 -1.25' is not a word with 3 numbers"),
        (TEXT + "dog 1 2 3\n" + TEXT, "word 4: b'dog 1 2 3' has more than 2 numbers"),
        ("the 0 0\ncat 0 -0\n", "all vectors are zero"),
        (
            TEXT + "dog 1 inf\n",
            "word 4 is empty, or has a value that is not finite or exceeds 1e12",
        ),
        (TEXT.encode() + b"\xff\xfe 1 2\n", "word 4 is not UTF-8"),
        ("3 200000000000\n\n" + TEXT, "has no word vectors of 1 to 65,536 dimensions"),
        (gzip.compress(TEXT.encode() * 100, mtime=0)[:-20], "truncated or corrupt gzip"),
        (binary(WORDS, VALUES)[:-9], "line 1 announces 5 words, but there are 4"),
        (binary(WORDS, VALUES * np.float32(np.nan)), "word 1 is empty, or has a value"),
        (binary(WORDS, VALUES).replace("日本".encode(), b"\xe6"), "word 3 is not UTF-8"),
        (binary(["the", "", "x"], VALUES[:3]), "word 2 is empty"),
        (binary(WORDS, VALUES).replace(b"5 7", b"900000000000 7", 1), "900,000,000,000 words"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, data: bytes | str, message: str) -> None:
    with refuses(f"{tmp_path / 'vectors.txt'}: .*{message}"):
        read(tmp_path, data)
    with pytest.raises(UserError):
        compact_vectors(tmp_path / "vectors.txt", tmp_path / "compact")
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.txt"]


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("block", [50, 8 << 20])  # bytes: of one or two words, and of all
@pytest.mark.parametrize("first", [np.zeros(7), np.full(7, 0.25), np.arange(7) / 100])
def test_the_binary_form_of_word2vec(
    tmp_path: Path, end: bytes, zipped: bool, block: int, first: np.ndarray, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("paraloom.models.text.vectors._BLOCK", block)
    matrix = np.vstack([first.astype(np.float32), VALUES])
    data = b"\xef\xbb\xbf" * zipped + binary(["first", *WORDS], matrix, end)
    found = read(tmp_path, gzip.compress(data) if zipped else data)
    assert found.words.to_pylist() == ["first", *WORDS]
    assert np.array_equal(found.matrix, matrix)


def test_files_of_several_blocks(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.models.text.vectors._BLOCK", 16)
    rows = [f"word{i} {i} {i + 0.5}\n" for i in range(50)]
    vectors = read(tmp_path, "".join(rows))
    assert vectors.matrix.tolist() == [[i, i + 0.5] for i in range(50)]
    with pytest.raises(UserError, match="word 41: b'x y z' is not a word"):
        read(tmp_path, "".join([*rows[:40], "x y z\n", *rows]))
    with pytest.raises(UserError, match="a word does not end"):  # before all of it is read
        read(tmp_path, "a 1\n" + "x" * 10_000)


words = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=5)
numbers = st.floats(-(2.0**39), 2.0**39, width=32)
matrices = arrays(
    np.float32, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=numbers
).filter(np.any)


@given(st.lists(words, min_size=8, max_size=8, unique=True), matrices)
@settings(max_examples=60)
def test_the_way_there_and_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], matrix: NDArray[np.float32]
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    path = folder / "v.txt"
    names = ["#" + name for name in names[: len(matrix)]]  # `5 2` would be word2vec's first line
    write_vectors(path, names, matrix)
    vectors = read_vectors(path)
    compact_vectors(path, folder / "compact")
    mapped = open_vectors(folder / "compact")
    for found in (vectors, mapped):
        assert found.words.to_pylist() == names
        assert np.array_equal(found.matrix, matrix)
        assert found.rows([*names, "none", *names[:1]]).tolist() == [*range(len(names)), -1, 0]


def test_a_word_that_is_none_is_not_written(tmp_path: Path) -> None:
    for word in ("", "a b", "a\nb"):
        with pytest.raises(UserError, match="is not a word"):
            write_vectors(tmp_path / "v.txt", [word], np.ones((1, 2)))
    assert not (tmp_path / "v.txt").exists()


def test_unknown_words_have_the_files_own_vector_or_none() -> None:
    matrix = np.array([[1, 2], [3, 4]], np.float32)
    plain = WordVectors(["a", "b"], matrix)
    assert plain.at(plain.rows(["b", "x"])).tolist() == [[3, 4], [0, 0]]
    paragram = WordVectors(["a", UNKNOWN], matrix)
    assert paragram.rows(["x", "a"]).tolist() == [-1, 0]
    assert paragram.at(paragram.rows(["x", "a"])).tolist() == [[3, 4], [1, 2]]
    twice = WordVectors(["a", "a"], matrix)
    assert twice.at(twice.rows(["a"])).tolist() == [[1, 2]]  # its first vector


def test_a_colliding_hash_never_gives_another_words_vector(monkeypatch: Patch) -> None:
    def equal(words: list[str]) -> NDArray[np.uint64]:
        return np.zeros(len(words), np.uint64)

    monkeypatch.setattr("paraloom.models.text.vectors.text_hashes", equal)
    vectors = WordVectors(["a", "b"], np.eye(2, dtype=np.float32))
    assert vectors.rows(["a", "b", "c"]).tolist() == [0, -1, -1]


@pytest.mark.parametrize("damage", ["words.arrow", "matrix.f32"])
def test_processes_share_the_mapped_file_and_damage_is_named(tmp_path: Path, damage: str) -> None:
    (tmp_path / "v.txt").write_text(TEXT)
    compact_vectors(tmp_path / "v.txt", tmp_path / "compact")
    matrix = open_vectors(tmp_path / "compact").matrix
    while matrix.base is not None and not isinstance(matrix, np.memmap):
        matrix = matrix.base
    assert isinstance(matrix, np.memmap)
    file = tmp_path / "compact" / damage
    file.write_bytes(file.read_bytes()[:-6])
    with pytest.raises(UserError, match="damaged word vectors; remove the folder"):
        open_vectors(tmp_path / "compact")


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
