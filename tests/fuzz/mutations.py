"""Random damage to bytes and to JSON values; the same seed, the same damage."""

import copy
import gzip
from random import Random
from typing import Any

TOKENS = (
    b"\0", b"\n", b"\r\n", b"\r", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"\xc3",
    b"\xe2\x80\xa8", b"\x1b[2J", b"\x85", b"-1", b"0", b"1e999", b"nan", b"9" * 30, b"9" * 5000,
    b"../../victim", b"{", b"[" * 300, b"}", b"]", b'"', b"'", b"null", b"*a", b"&a ", b"!!int ",
    b"<<: ", b": ", b"- ", b"|||", b"x" * 3000, b"\xf0\x9f\x98\x80", b"<s>",
)  # fmt: skip

NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 0.5, -0.0, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"), "", " ", "a", "\0", "\x1b[31m", "\u202e", "\ud800",
    "nan", "1", "../../victim", "/", "a/b", "x" * 300, "x" * 5000, "*", "[", "cs", "${HOME}",
    "${NONE}", [], [[]], [None], ["a", "a"], [1e308, float("nan")], {}, {"a": {}}, {"": None},
    {"\0": 1}, {"a": [1, {"b": "\n"}]},
)  # fmt: skip


def damaged(data: bytes, random: Random) -> bytes:
    """The bytes with one to five edits; now and then compressed, truncated or doubled."""
    for _ in range(random.randint(1, 5)):
        start = random.randrange(len(data) + 1)
        end = min(len(data), start + random.choice((0, 0, 1, 1, 4, 50, 3000)))
        piece = random.choice(
            (b"", random.choice(TOKENS), random.randbytes(random.choice((1, 2, 40))), data[:end])
        )
        data = data[:start] + piece + data[end:]
    how = random.random()
    if how < 0.05:
        half = random.randrange(len(data) + 1)
        data = gzip.compress(data[:half]) + gzip.compress(data[half:])
    elif how < 0.1:
        data = gzip.compress(data)[: -random.randint(1, 30)]
    return data[: 1 << 18]


def changed(value: Any, random: Random) -> Any:
    """JSON values with one to four of them, at any depth, replaced, removed or added."""
    value = copy.deepcopy(value)
    for _ in range(random.randint(1, 4)):
        value = _change(value, random)
    return value


def _change(value: Any, random: Random) -> Any:
    inner = isinstance(value, dict | list) and len(value) > 0
    if not inner or random.random() < 0.1:
        return copy.deepcopy(random.choice(NASTY))
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, how = random.choice(keys), random.random()
    if how < 0.1:
        del value[key]
    elif how < 0.2 and isinstance(value, dict):
        value[random.choice(("", "../../victim", "a\0", "x" * 300, "words", "score"))] = value[key]
    elif how < 0.2:
        value.insert(key, copy.deepcopy(value[random.randrange(len(value))]))
    else:
        value[key] = _change(value[key], random)
    return value
