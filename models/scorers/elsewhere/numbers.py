"""Numbers that other programs wrote as text."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NUMBER = r"^[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|(?i:nan|inf|infinity))$"


def numbers(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that texts (string or binary) stand for, and which texts are numbers.

    White space around a number does not count. Returns float32 [n], NaN where the text is no
    number, and bool [n].

    >>> values, known = numbers(pa.array(["0.5", " +1e3 ", "nan", "good"]))
    >>> values.tolist(), known.tolist()
    ([0.5, 1000.0, nan, nan], [True, True, True, False])
    """
    bare = pc.replace_substring_regex(texts.cast(pa.binary()), r"^\s+|\s+$", b"")
    known = pc.fill_null(pc.match_substring_regex(bare, _NUMBER), False)
    bare = pc.replace_substring_regex(pc.if_else(known, bare, b"nan"), r"^\+", b"")
    with np.errstate(over="ignore"):
        values = bare.cast(pa.string()).cast(pa.float64()).to_numpy().astype(np.float32)
    return values, known.to_numpy(zero_copy_only=False)
