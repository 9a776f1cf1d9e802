"""Beam's Java servers on the loopback interface.

Beam's job server and its part of a TaskManager pass gRPC a port without the host
(`NettyServerBuilder.forPort(address.getPort())`), so that they listen on all interfaces. No option
changes this, so the compiled class is changed to `NettyServerBuilder.forAddress(address)`, in a jar
of its own that precedes the others in the class path.
"""

import struct
import zipfile
from pathlib import Path
from typing import Any

from tests.flink.install import jars

_CLASS = "org/apache/beam/sdk/fn/server/ServerFactory$InetSocketAddressServerFactory.class"
_UTF8, _LONG, _DOUBLE, _METHOD, _NAME_AND_TYPE = 1, 5, 6, 10, 12
# Bytes of constants, by tag.
_SIZES = {3: 4, 4: 4, _LONG: 8, _DOUBLE: 8, 7: 2, 8: 2, 9: 4, _METHOD: 4, 11: 4}
_SIZES |= {_NAME_AND_TYPE: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_INVOKE_VIRTUAL, _INVOKE_STATIC, _NOTHING = b"\xb6", b"\xb8", bytes(3)


def write_patch(folder: Path, jar: Path) -> Path:
    """Write a jar with the changed class of `jar` below `folder`, empty if nothing changes."""
    target = jars(folder) / "loopback.jar"
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as patch, zipfile.ZipFile(jar) as found:
        code = found.read(_CLASS) if _CLASS in found.namelist() else b""
        if b"forPort" in code:
            patch.writestr(_CLASS, on_loopback(code))  # fails with another version of Beam
    return target


def on_loopback(code: bytes) -> bytes:
    """The compiled class, whose servers then listen at their address instead of all."""
    constants, end = _constants(code)

    def method(of: str, name: str) -> tuple[int, int, str]:
        """The index of a method, the index of its class, and its signature."""
        for index, (tag, value) in constants.items():
            if tag == _METHOD:
                owner, (named, typed) = value[0], constants[value[1]][1]
                if (
                    constants[constants[owner][1][0]][1].endswith(of)
                    and constants[named][1] == name
                ):
                    return index, owner, constants[typed][1]
        raise ValueError(f"{of}.{name} is not called")

    port, _, _ = method("InetSocketAddress", "getPort")
    made, builder, signature = method("NettyServerBuilder", "forPort")
    called = [_INVOKE_VIRTUAL, struct.pack(">H", port), _INVOKE_STATIC, struct.pack(">H", made)]
    old = b"".join(called)
    if code.count(old) != 1 or code.count(b"".join(called[2:])) != 1:
        raise ValueError("forPort is called elsewhere")
    first = struct.unpack(">H", code[8:10])[0]
    new = _INVOKE_STATIC + struct.pack(">H", first + 3)
    texts = "forAddress", signature.replace("(I)", "(Ljava/net/SocketAddress;)")
    added = b"".join(struct.pack(">BH", _UTF8, len(text)) + text.encode() for text in texts)
    added += struct.pack(">BHH", _NAME_AND_TYPE, first, first + 1)
    added += struct.pack(">BHH", _METHOD, builder, first + 2)
    rest = code[end:].replace(old, _NOTHING + new)
    return code[:8] + struct.pack(">H", first + 4) + code[10:end] + added + rest


def _constants(code: bytes) -> tuple[dict[int, tuple[int, Any]], int]:
    """The constants of a class by index, with their tags, and where they end."""
    found = {}
    end = 10
    indices = iter(range(1, int.from_bytes(code[8:end])))
    for index in indices:
        tag = code[end]
        size = _SIZES.get(tag) or 2 + int.from_bytes(code[end + 1 : end + 3])
        content = code[end + 1 : end + 1 + size]
        text = content[2:].decode(errors="replace")
        fields = [int.from_bytes(content[i : i + 2]) for i in range(0, size, 2)]
        found[index] = tag, text if tag == _UTF8 else fields
        if tag in (_LONG, _DOUBLE):  # they count twice
            next(indices)
        end += 1 + size
    return found, end
