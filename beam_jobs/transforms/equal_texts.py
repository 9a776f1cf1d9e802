"""Equal texts: normalised, hashed, and found."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash


def row_hash(*columns: pa.Array) -> np.ndarray:
    """128-bit hash of each row's texts (XXH3), uint64 [n, 2]."""
    joined = columns[0]
    if len(columns) > 1:
        joined = pc.binary_join_element_wise(*columns, "\x1f")
    digest = xxhash.xxh3_128_digest
    data = b"".join([digest(text) for text in joined.cast(pa.binary()).to_pylist()])
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def normalised(text: pa.Array) -> pa.Array:
    """Lower-case letters and digits, separated by one space, for comparing texts.

    >>> normalised(pa.array(["A dog -- barks!"]))[0].as_py()
    'a dog barks'
    """
    lower = pc.utf8_lower(pc.utf8_normalize(text, "NFKC"))
    spaced = pc.replace_substring_regex(lower, r"[^\p{L}\p{M}\p{N}]+", " ")
    return pc.utf8_trim(spaced, " ")


def repeated(hashes: np.ndarray, units: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which rows [n] (bool) have the hash of an earlier one, by (unit, row)."""
    order = np.lexsort((rows, units, hashes[:, 1], hashes[:, 0]))
    ordered, found = hashes[order], np.zeros(len(order), bool)
    found[order[1:]] = (ordered[1:] == ordered[:-1]).all(axis=1)
    return found
