"""word2vec's binary form of word vectors, plain or gzip.

The first line is `words dimensions`. Then comes each word, a space, its vector as little-endian
float32, and in some files a line feed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from paraloom.models.errors import UserError
from paraloom.models.files import opened

LARGEST = 1e12  # of a value, so that sums of squares fit float32
HEADER = re.compile(rb"[ \t]*(\d{1,12})[ \t]+(\d{1,12})[ \t]*\r?(?:\n|\Z)")
"""The first line: words, dimensions."""
_LARGEST_DIMENSION = 1 << 16
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_BLOCK = 8 << 20  # bytes
_LONGEST = 10_000  # bytes of a word


def check_dimension(path: Path, dim: int) -> None:
    """Check the dimension that a file claims before memory is taken for it."""
    if not 1 <= dim <= _LARGEST_DIMENSION:
        raise UserError(
            f"{path}: vectors of {dim:,} dimensions; 1 to {_LARGEST_DIMENSION:,} can be read"
        )


def is_binary(path: Path) -> bool:
    """Whether a file of word vectors has word2vec's binary form, not text."""
    with opened(path) as stream:
        start = stream.read(4096)
    first = HEADER.match(start)
    if first is None:
        return False
    _, space, values = start[first.end() :].partition(b" ")
    values = values[: 4 * int(first[2])]
    return bool(space) and (_CONTROL.search(values) is not None or not _begins_as_utf8(values))


def _begins_as_utf8(text: bytes) -> bool:
    """Whether it is UTF-8, except perhaps for its last, incomplete character."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def binary_blocks(path: Path) -> Iterator[tuple[pa.StringArray, np.ndarray]]:
    """Words and vectors in blocks: n strings, float32 [n, d]."""
    with opened(path) as stream:
        promised, dim = map(int, stream.readline(100).split())
        check_dimension(path, dim)
        size = 4 * dim
        number = 0
        rest = b""
        words: list[bytes] = []
        vectors: list[bytes] = []
        while number < promised:
            data = stream.read(_BLOCK)
            rest, at = rest + data, 0
            while number < promised:
                space = rest.find(b" ", at)
                if space < 0 or space + 1 + size > len(rest):
                    break
                words.append(rest[at:space].lstrip(b"\n"))
                vectors.append(rest[space + 1 : space + 1 + size])
                at = space + 1 + size
                number += 1
            rest = rest[at:]
            if words:
                yield _checked(words, vectors, dim, path, number - len(words))
                words, vectors = [], []
            if number < promised and (not data or len(rest) > _BLOCK + _LONGEST + size):
                raise UserError(
                    f"{path}: line 1 promises {promised:,} words, but the file ends or is damaged "
                    f"after {number:,}"
                )
    if not promised:
        raise UserError(f"{path}: holds no word vectors")


def _checked(
    words: list[bytes], vectors: list[bytes], dim: int, path: Path, before: int
) -> tuple[pa.StringArray, np.ndarray]:
    matrix = np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dim).astype(np.float32)
    texts = np.array([_is_word(word) for word in words], bool)
    good: np.ndarray = np.all(np.abs(matrix) <= LARGEST, axis=1) & texts
    if not good.all():
        raise UserError(
            f"{path}: word {before + 1 + np.argmin(good):,} of the binary file is empty or not "
            "UTF-8, or has a value that is not finite, or over 1e12"
        )
    return pa.array(words, pa.binary()).cast(pa.string()), matrix


def _is_word(text: bytes) -> bool:
    try:
        return bool(text.decode())
    except UnicodeDecodeError:
        return False
