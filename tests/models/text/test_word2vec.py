"""word2vec's binary form, against the text form of the same vectors."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from paraloom.models.errors import UserError
from paraloom.models.text.vectors import compact_vectors, open_vectors, read_vectors, write_vectors

WORDS = ["the", "d'être", "日本", "a_b", "0.5"]
MATRIX = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)


def binary(words: list[str], matrix: np.ndarray, end: bytes = b"\n") -> bytes:
    values = (row.astype("<f4").tobytes() for row in matrix)
    rows = (w.encode() + b" " + row + end for w, row in zip(words, values, strict=True))
    return f"{len(words)} {matrix.shape[1]}\n".encode() + b"".join(rows)


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("zipped", [False, True])
def test_the_same_vectors_as_in_text_form(
    tmp_path: Path, end: bytes, zipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraloom.models.text.word2vec._BLOCK", 50)  # of one or two words
    path, text = tmp_path / "vectors.bin", tmp_path / "vectors.txt"
    data = binary(WORDS, MATRIX, end)
    path.write_bytes(gzip.compress(data) if zipped else data)
    write_vectors(text, WORDS, MATRIX)
    compact_vectors(path, tmp_path / "compact")
    for found in (read_vectors(path), open_vectors(tmp_path / "compact"), read_vectors(text)):
        assert found.words.to_pylist() == WORDS
        assert np.array_equal(found.matrix, MATRIX)


@pytest.mark.parametrize("special", [np.zeros(7), np.full(7, 0.25), np.arange(7) / 100])
def test_it_is_recognised(tmp_path: Path, special: np.ndarray) -> None:
    matrix = np.vstack([special, MATRIX]).astype(np.float32)
    (tmp_path / "v.bin").write_bytes(binary(["first", *WORDS], matrix))
    assert np.array_equal(read_vectors(tmp_path / "v.bin").matrix, matrix)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (binary(WORDS, MATRIX)[:-9], "promises 5 words, but the file ends or is damaged after 4"),
        (binary(WORDS, MATRIX * np.float32(np.nan)), "word 1 of the binary file"),
        (binary(WORDS, MATRIX).replace("日本".encode(), b"\xe6"), "word 3 of the binary file"),
        (binary(["the", "", "x"], MATRIX[:3]), "word 2 of the binary file is empty"),
        (binary(WORDS, MATRIX).replace(b"5 7", b"5 900000000", 1), "of 900,000,000 dimensions"),
        (binary(WORDS, MATRIX).replace(b"5 7", b"900000000000 7", 1), "900,000,000,000 words"),
    ],
)
def test_damage_is_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "v.bin").write_bytes(data)
    with pytest.raises(UserError, match=message) as error:
        read_vectors(tmp_path / "v.bin")
    assert str(tmp_path / "v.bin") in str(error.value) and "\n" not in str(error.value)
