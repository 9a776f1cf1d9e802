import io
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.applications import embed as module
from paraloom.models.embeddings.applications.embed import embed_lines, similarity_lines
from paraloom.models.embeddings.comparison import Embed
from paraloom.models.errors import UserError
from tests.run_helpers import Patch

LINES = ["A dog.", "", "two\u2028words\u0085 here", "čeština", "x"]


def stream(lines: list[str], end: str = "\n") -> io.BytesIO:
    return io.BytesIO("".join(line + end for line in lines).encode())


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: Patch) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)


class Pipe(io.BytesIO):
    """Cannot seek, as a pipe."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation("seek")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_vectors_of_lines(bag_of_words: Embed, count: int, end: str) -> None:
    """The last line may have no end."""
    lines = LINES[:count]
    expected = bag_of_words(pa.array(lines, pa.string()))
    text = b"\xef\xbb\xbf" * (count > 1) + stream(lines, end).getvalue()
    if count % 2:
        text = text.removesuffix(b"\n")
    pipe, memory = Pipe(), io.BytesIO()
    for out in (pipe, memory):
        embed_lines(bag_of_words, io.BytesIO(text), out)
    assert pipe.getvalue() == memory.getvalue()
    memory.seek(0)
    vectors = np.load(memory)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, expected)


@pytest.mark.parametrize("mode", ["wb", "ab", "behind"])
def test_standard_output_in_a_file(bag_of_words: Embed, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"" if mode == "ab" else b"before")
    with path.open("r+b" if mode == "behind" else mode) as out:
        if mode == "behind":
            out.seek(6)
        embed_lines(bag_of_words, stream(LINES), cast(BinaryIO, out))
    written = path.read_bytes()
    if mode == "behind":
        assert written.startswith(b"before")
        written = written[6:]
    np.testing.assert_array_equal(np.load(io.BytesIO(written)), bag_of_words(pa.array(LINES)))


def test_what_is_half_written_is_no_npy(bag_of_words: Embed, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    out = path.open("wb")
    lines = io.BytesIO(b"a\n" * 7 + b"\xff\n")
    with out, pytest.raises(UserError, match="line 8: not UTF-8"):
        embed_lines(bag_of_words, lines, out)
    assert path.stat().st_size > 0
    with pytest.raises(ValueError, match="pickle"):  # numpy does not know the file
        np.load(path)


def test_one_cosine_a_line(bag_of_words: Embed) -> None:
    out = io.BytesIO()
    pairs = ["a b\ta b", "a b\ta c", "\ta", "a\tb", "a\u2028b\tb a"]
    similarity_lines(bag_of_words, stream(pairs), out)
    assert [float(line) for line in out.getvalue().split()] == [1, 0.5, 0, 0, 1]
    empty = io.BytesIO()
    similarity_lines(bag_of_words, io.BytesIO(), empty)
    assert empty.getvalue() == b""


@pytest.mark.parametrize(("line", "columns"), [("a\tb\tc", 3), ("", 1)])
def test_a_line_that_is_no_pair_is_named(bag_of_words: Embed, line: str, columns: int) -> None:
    with pytest.raises(UserError, match=f"line 4: {columns} tab-separated columns, expected two"):
        similarity_lines(bag_of_words, stream(["a\tb"] * 3 + [line]), io.BytesIO())


def test_memory_does_not_grow_with_the_lines() -> None:
    """Only as many lines are asked for as a batch holds before its vectors are written."""
    open_lines = 0

    class Lines(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            nonlocal open_lines
            line = super().readline(size)
            open_lines += bool(line)
            assert open_lines <= 2
            return line

    def embed(text: pa.StringArray) -> np.ndarray:
        nonlocal open_lines
        open_lines -= len(text)
        return np.zeros((len(text), 2))

    out = io.BytesIO()
    embed_lines(embed, Lines(b"a b\n" * 50), out)
    out.seek(0)
    assert np.load(out).shape == (50, 2)


def test_a_line_without_end_is_not_read_to_its_end(bag_of_words: Embed, monkeypatch: Patch) -> None:
    monkeypatch.setattr(module, "_LONGEST", 10)
    lines = io.BytesIO(b"a b\n" * 5 + b"a" * 1000)
    with pytest.raises(UserError, match=r"^line 6: longer than 10 bytes$"):
        embed_lines(bag_of_words, lines, io.BytesIO())
    assert lines.tell() == 5 * 4 + 10
    with pytest.raises(UserError, match=r"^line 1: longer than 10 bytes$"):
        similarity_lines(bag_of_words, io.BytesIO(b"a\t" * 9), io.BytesIO())
