"""Precompiled character maps of `tokenizers`: replacements of many strings in one step."""

import struct
from collections.abc import Mapping

_BLOCK = 256
_Trie = dict[int, "_Trie | int"]  # by bytes; a value is under 0


def precompiled(replacements: Mapping[str, str]) -> bytes:
    """The bytes for `normalizers.Precompiled`: each key, a character or a cluster of characters of
    fewer than 6 bytes, is replaced.

    The format is SentencePiece's: a trie of the keys as a double array (darts-clone), whose values
    are positions in the pool of the replacements. No key may begin another.
    """
    pool = bytearray()
    positions: dict[str, int] = {}
    trie: _Trie = {}
    for key, text in sorted(replacements.items()):
        if text not in positions:
            positions[text] = len(pool)
            pool += text.encode() + b"\0"
        node = trie
        *path, last = key.encode()
        for byte in path:
            child = node.setdefault(byte, {})
            assert isinstance(child, dict)
            node = child
        node[last] = {0: positions[text]}
    units = _double_array(trie)
    array = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(array)) + array + bytes(pool)


def _double_array(trie: _Trie) -> list[int]:
    """The trie's units: the children of a unit are at its base XOR their byte."""
    units, taken = [0] * _BLOCK, bytearray(_BLOCK)
    bases: set[int] = set()
    taken[0] = 1
    free = 1  # no unit before this one is free
    waiting = [(0, trie)]
    while waiting:
        position, node = waiting.pop()
        while free < len(taken) and taken[free]:
            free += 1
        first, *others = sorted(node)
        slot = free
        while True:
            if slot + _BLOCK > len(taken):
                units += [0] * _BLOCK
                taken += bytearray(_BLOCK)
            base = slot ^ first
            if not taken[slot] and base not in bases and not any(taken[base ^ c] for c in others):
                break
            slot += 1
        bases.add(base)
        offset = position ^ base
        units[position] |= offset << 10 if offset < 1 << 21 else offset << 2 | 1 << 9
        for byte, child in node.items():
            taken[base ^ byte] = 1
            if isinstance(child, int):
                units[base ^ byte] = child | 1 << 31
                units[position] |= 1 << 8  # it has a value
            else:
                units[base ^ byte] = byte
                waiting.append((base ^ byte, child))
    return units
