"""Word vectors in their published forms, and in a compact form that processes share.

- Text form (PARAGRAM, GloVe, word2vec): one `word v1 … vd` per line. In word2vec's files, line 1
  contains the number of words and the number of dimensions d.
- Binary form (word2vec): line 1 is as in word2vec's text form. Each word is followed by a space and
  d little-endian float32 values.
- Compact form: a folder with the memory-mapped files `matrix.f32` (the vectors) and `words.arrow`
  (the words and their sorted hashes).

Files in the text and binary forms may be compressed.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import atomic_file, atomic_folder
from paraloom.models.hashing import text_hashes
from paraloom.models.text.files import opened

UNKNOWN = "UUUNKKK"  # in PARAGRAM files, this word has the vector for unknown words
_BLOCK = 8 << 20  # bytes parsed at once
_MOST = 1 << 16  # maximum dimensions
_LARGEST = 1e12  # maximum absolute value; sums of squares must fit float32
_HEADER = re.compile(rb"[ \t]*(\d{1,12})[ \t]+(\d{1,12})[ \t]*\r?(?:\n|\Z)")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_Words = tuple[pa.StringArray, np.ndarray]  # n words and their vectors, float32 [n, d]
_COMPACT = pa.schema([("word", pa.string()), ("hash", pa.uint64()), ("row", pa.int32())])


class WordVectors:
    """V words and their vectors, in memory or memory-mapped.

    If a word occurs twice, its first vector is used.

    >>> vectors = WordVectors(["cat", "dog"], np.eye(2, dtype=np.float32))
    >>> vectors.rows(["dog", "bird"]).tolist()
    [1, -1]
    >>> vectors.at(vectors.rows(["dog", "bird"])).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        words: Sequence[str] | pa.StringArray,
        matrix: np.ndarray,
        *,
        index: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.words = words if isinstance(words, pa.Array) else pa.array(words, pa.string())
        self.matrix = matrix  # float32 [V, d]
        if matrix.ndim != 2 or not 0 < len(matrix) == len(self.words):
            raise ValueError(f"{len(self.words)} words but a matrix of shape {matrix.shape}")
        self._hashes, self._order = index or _index(self.words)
        self.unknown = int(self.rows([UNKNOWN])[0])  # row for unknown words, or -1

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        """Length d of each vector."""
        return int(self.matrix.shape[1])

    def rows(self, words: Sequence[str] | pa.StringArray) -> np.ndarray:
        """Return the row of each word, or -1 if the word is unknown: int32 [n]."""
        asked = words if isinstance(words, pa.Array) else pa.array(words, pa.string())
        indices = np.minimum(np.searchsorted(self._hashes, text_hashes(asked)), len(self) - 1)
        rows = self._order[indices].copy()
        same = pc.equal(self.words.take(pa.array(rows)), asked)
        rows[~same.to_numpy(zero_copy_only=False)] = -1
        return rows

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows: float32 [n, d].

        The vector for row -1 is the vector of `UNKNOWN` or, without this word, zeros.
        """
        rows = np.where(rows < 0, self.unknown, rows)
        vectors: np.ndarray = self.matrix[rows]
        vectors[rows < 0] = 0.0
        return vectors


def read_vectors(path: Path | str) -> WordVectors:
    """Read a file in text or binary form, with little more memory than the matrix needs."""
    matrix = np.empty((0, 0), np.float32)
    words: list[pa.StringArray] = []
    filled = 0
    for names, block in _blocks(Path(path)):
        words.append(names)
        if filled + len(block) > len(matrix):
            # Linux extends a large matrix without a copy.
            room = max(len(matrix) * 9 // 8, filled + len(block))
            matrix.resize((room, block.shape[1]), refcheck=False)
        matrix[filled : filled + len(block)] = block
        filled += len(block)
    matrix.resize((filled, matrix.shape[1]), refcheck=False)
    return WordVectors(pa.concat_arrays(words), matrix)


def load_vectors(path: Path) -> WordVectors:
    """Open a folder in compact form, or read a file in text or binary form."""
    return open_vectors(path) if path.is_dir() else read_vectors(path)


def write_vectors(
    path: Path | str, words: Sequence[str] | pa.StringArray, matrix: np.ndarray
) -> None:
    """Write the text form, without a loss of precision."""
    words = words if isinstance(words, pa.Array) else pa.array(words, pa.string())
    bad = pc.filter(words, pc.match_substring_regex(words, r"^$|[ \t\r\n]"))
    if len(bad):
        raise UserError(f"{path}: {bad[0].as_py()!r} is not a word: it is empty or has white space")
    matrix = np.asarray(matrix, np.float32)
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        for start in range(0, len(words), 4096):
            block = np.ascontiguousarray(matrix[start : start + 4096].T)
            columns = [pa.array(values).cast(pa.string()) for values in block]
            lines = pc.binary_join_element_wise(words[start : start + 4096], *columns, " ")
            stream.write("\n".join([*lines.to_pylist(), ""]).encode())


def compact_vectors(text: Path | str, folder: Path | str) -> None:
    """Convert the text or binary form to the compact form, with little memory."""
    with atomic_folder(folder) as temporary:
        blocks = []
        with (temporary / "matrix.f32").open("wb") as stream:
            for words, matrix in _blocks(Path(text)):
                blocks.append(words)
                stream.write(np.ascontiguousarray(matrix).data)
        words = pa.concat_arrays(blocks)
        hashes, order = _index(words)
        table = pa.table([words, hashes, order], schema=_COMPACT)
        with pa.ipc.new_file(temporary / "words.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=len(table))


def open_vectors(folder: Path | str) -> WordVectors:
    """Memory-map the compact form. All processes on a machine share one copy of the vectors."""
    folder = Path(folder)
    with in_one_line(f"{folder}: damaged word vectors; remove the folder to make them again"):
        with pa.memory_map(str(folder / "words.arrow")) as source:
            table = pa.ipc.open_file(source).read_all().combine_chunks()
        word, hashes, order = (table[name].chunk(0) for name in _COMPACT.names)
        matrix = np.asarray(np.memmap(folder / "matrix.f32", np.float32, "r"))
        return WordVectors(
            word, matrix.reshape(len(table), -1), index=(hashes.to_numpy(), order.to_numpy())
        )


def _index(words: pa.StringArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted hashes of words, uint64 [V], and the row of each hash, int32 [V]."""
    hashes = text_hashes(words)
    order = np.argsort(hashes, kind="stable").astype(np.int32)  # equal words in file order
    return hashes[order], order


def _blocks(path: Path) -> Iterator[_Words]:
    """Yield words and vectors in blocks: n strings, float32 [n, d]."""
    with opened(path) as stream:
        data = stream.read(_BLOCK)
        first = _HEADER.match(data)
        data = data[first.end() :] if first else data.lstrip()
        dim = int(first[2]) if first else len(data.partition(b"\n")[0].split()) - 1
        if not 1 <= dim <= _MOST:
            raise UserError(f"{path}: has no word vectors of 1 to {_MOST:,} dimensions")
        take = _take_binary if first and _is_binary(data, dim) else _take_lines
        found, all_zero = 0, True
        while True:
            more = stream.read(_BLOCK)
            with in_one_line(f"{path}: cannot be read"):
                words, matrix, rest = take(data if more else data + b"\n", dim, found)
            wrong = ~np.all(np.abs(matrix) <= _LARGEST, axis=1)
            wrong |= pc.equal(words, "").to_numpy(zero_copy_only=False)
            if wrong.any():
                raise UserError(
                    f"{path}: word {found + 1 + np.argmax(wrong):,} is empty, or has a value that "
                    "is not finite or exceeds 1e12"
                )
            found += len(words)
            all_zero = all_zero and not matrix.any()
            if len(words):
                yield words, matrix
            if not more:
                break
            if len(rest) > 2 * _BLOCK:
                raise UserError(f"{path}: not word vectors: a word does not end")
            data = rest + more
    promised = int(first[1]) if first else found
    if not found:
        raise UserError(f"{path}: has no word vectors")
    if found != promised:
        raise UserError(f"{path}: line 1 announces {promised:,} words, but there are {found:,}")
    if all_zero:
        raise UserError(f"{path}: all vectors are zero")


def _is_binary(data: bytes, dim: int) -> bool:
    """Return whether the bytes after the first word are floats instead of text."""
    values = data.partition(b" ")[2][: 4 * dim]
    as_text = values.decode(errors="ignore").encode()
    # The last character may be truncated.
    return bool(_CONTROL.search(values)) or len(as_text) < len(values) - 3


def _take_binary(data: bytes, dim: int, found: int) -> tuple[pa.StringArray, np.ndarray, bytes]:
    words, vectors, at, size = [], [], 0, 4 * dim
    while (space := data.find(b" ", at)) >= 0 and space + 1 + size <= len(data):
        try:
            words.append(data[at:space].lstrip(b"\n").decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"word {found + len(words) + 1:,} is not UTF-8") from error
        at = space + 1 + size
        vectors.append(data[space + 1 : at])
    matrix = np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dim).astype(np.float32)
    return pa.array(words, pa.string()), matrix, data[at:]


def _take_lines(data: bytes, dim: int, found: int) -> tuple[pa.StringArray, np.ndarray, bytes]:
    whole, newline, rest = data.rpartition(b"\n")
    text = whole + newline
    first = text.partition(b"\n")[0]
    delimiter = "\t" if b"\t" in first else " "
    if first.endswith((b" ", b" \r")):  # word2vec ends its lines with a space
        text = text.replace(b"\r\n", b"\n").replace(b" \n", b"\n")
    columns = [str(number) for number in range(dim + 1)]
    types = dict.fromkeys(columns[1:], pa.float32()) | {columns[0]: pa.string()}
    if not text.strip():
        return pa.array([], pa.string()), np.empty((0, dim), np.float32), rest
    try:
        table = pacsv.read_csv(
            pa.BufferReader(text),
            pacsv.ReadOptions(column_names=columns, use_threads=False, block_size=len(text) + 1),
            pacsv.ParseOptions(delimiter=delimiter, quote_char=False),
            pacsv.ConvertOptions(column_types=types, null_values=[]),
        ).combine_chunks()
        matrix = np.stack([table[name].chunk(0).to_numpy() for name in columns[1:]], axis=1)
        return table["0"].chunk(0), matrix, rest
    except pa.ArrowInvalid:  # the file has an error, or words with spaces, as in GloVe
        return *_by_line(text, delimiter.encode(), dim, found), rest


def _by_line(text: bytes, delimiter: bytes, dim: int, found: int) -> _Words:
    words, vectors = [], []
    for number, line in enumerate(filter(None, map(bytes.rstrip, text.splitlines())), found + 1):
        word, *values = line.rsplit(delimiter, dim)
        try:
            vectors.append(np.array(values, np.float32).reshape(dim))
            words.append(word.strip().decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"word {number:,} is not UTF-8") from error
        except ValueError as error:
            raise ValueError(
                f"word {number:,}: {line[:60]!r} is not a word with {dim} numbers"
            ) from error
        if re.search(r" \S*\d$", words[-1]):
            raise ValueError(f"word {number:,}: {line[:60]!r} has more than {dim} numbers")
    return pa.array(words, pa.string()), np.array(vectors, np.float32)
