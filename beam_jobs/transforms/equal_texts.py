"""Normalise, hash and compare texts."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

_LETTERS = np.frombuffer(b"0123456789abcdefghjkmnpqrstvwxyz", np.uint8)  # no look-alikes
_SHIFTS = np.array([*range(0, 60, 5), *range(0, 20, 5)], np.uint64)  # 12 + 4 letters of 5 bits


def row_hash(*columns: pa.Array) -> np.ndarray:
    """Return a 128-bit hash of the texts of each row (XXH3), uint64 [n, 2]."""
    joined = columns[0]
    if len(columns) > 1:
        joined = pc.binary_join_element_wise(*columns, "\x1f")
    digest = xxhash.xxh3_128_digest
    data = b"".join([digest(text) for text in joined.cast(pa.binary()).to_pylist()])
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def normalised(text: pa.Array) -> pa.Array:
    """Convert texts to words of lower-case letters and digits, separated by single spaces.

    >>> normalised(pa.array(["A dog -- barks!"]))[0].as_py()
    'a dog barks'
    """
    lower = pc.utf8_lower(pc.utf8_normalize(text, "NFKC"))
    spaced = pc.replace_substring_regex(lower, r"[^\p{L}\p{M}\p{N}]+", " ")
    return pc.utf8_trim(spaced, " ")


def content_ids(*columns: pa.Array) -> pa.StringArray:
    """Make an id for each row: 80 bits of the hash of its texts, as letters and digits.

    >>> content_ids(pa.array(["Pes.", "Pes."]), pa.array(["A dog.", "Dog."])).to_pylist()
    ['qy56xeezfwccc2n8', 'vcg5x0fkfjfea201']
    """
    words = np.repeat(row_hash(*columns), [12, 4], axis=1)
    letters = _LETTERS[(words >> _SHIFTS) & np.uint64(31)]
    offsets = np.arange(0, letters.size + 1, len(_SHIFTS), dtype=np.int32)
    return pa.StringArray.from_buffers(len(words), *map(pa.py_buffer, (offsets, letters)))


def counted(hashes: np.ndarray, units: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Number the rows with the same hash from 1, in the order of (unit, row): int64 [n]."""
    order = np.lexsort((rows, units, hashes[:, 1], hashes[:, 0]))
    ordered, at, found = hashes[order], np.arange(len(order)), np.empty(len(order), np.int64)
    first = np.concatenate([[0], at[1:] * (ordered[1:] != ordered[:-1]).any(axis=1)])
    found[order] = 1 + at - np.maximum.accumulate(first)[: len(at)]
    return found


def repeated(hashes: np.ndarray, units: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return whether an earlier row, in the order of (unit, row), has the same hash: bool [n]."""
    return counted(hashes, units, rows) > 1


def counted_if_shared(hashes: np.ndarray, units: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return `counted`, or 0 for a row if no other row has the same first half of the hash."""
    _, of, sizes = np.unique(hashes[:, 0], return_inverse=True, return_counts=True)
    return np.where(sizes[of] > 1, counted(hashes, units, rows), 0)
