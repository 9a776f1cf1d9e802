"""The change of Beam's compiled class, on one that has only what matters; Flink's tests run it."""

import struct
import zipfile
from pathlib import Path

import pytest

from tests.flink import java_loopback
from tests.flink.java_loopback import on_loopback, write_patch

CALL = b"\xb6" + struct.pack(">H", 6) + b"\xb8" + struct.pack(">H", 12)
"""invokevirtual InetSocketAddress.getPort, invokestatic NettyServerBuilder.forPort"""


def text(value: str) -> bytes:
    return struct.pack(">BH", 1, len(value)) + value.encode()


def compiled(code: bytes) -> bytes:
    """A class with these constants and this code; a long takes two indices."""
    constants = [
        text("java/net/InetSocketAddress"),  # 1
        struct.pack(">BH", 7, 1),
        text("getPort"),
        text("()I"),
        struct.pack(">BHH", 12, 3, 4),
        struct.pack(">BHH", 10, 2, 5),  # 6
        text("vendor/NettyServerBuilder"),
        struct.pack(">BH", 7, 7),
        text("forPort"),
        text("(I)Lvendor/NettyServerBuilder;"),
        struct.pack(">BHH", 12, 9, 10),
        struct.pack(">BHH", 10, 8, 11),  # 12
        struct.pack(">Bq", 5, 20),  # 13 and 14
        struct.pack(">BHH", 10, 8, 5),  # 15: getPort of another class
    ]
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 52, 16)
    return head + b"".join(constants) + code


def test_for_port_becomes_for_address() -> None:
    found = on_loopback(compiled(b"before" + CALL + b"after"))
    added = text("forAddress") + text("(Ljava/net/SocketAddress;)Lvendor/NettyServerBuilder;")
    added += struct.pack(">BHH", 12, 16, 17) + struct.pack(">BHH", 10, 8, 18)
    call = bytes(3) + b"\xb8" + struct.pack(">H", 19)
    expected = compiled(added + b"before" + call + b"after")
    assert found == expected[:8] + struct.pack(">H", 20) + expected[10:]


@pytest.mark.parametrize("code", [b"", CALL + CALL, CALL + CALL[3:], b"\xb6\0\x0f" + CALL[3:]])
def test_another_version_of_beam(code: bytes) -> None:
    """Its servers must not listen on all interfaces without a word."""
    with pytest.raises((ValueError, KeyError)):
        on_loopback(compiled(code))


@pytest.mark.parametrize("names", [["Other.class"], [java_loopback._CLASS]])
def test_nothing_to_change(tmp_path: Path, names: list[str]) -> None:
    jar = tmp_path / "beam.jar"
    with zipfile.ZipFile(jar, "w") as file:
        for name in names:
            file.writestr(name, b"a version that names the address itself")
    with zipfile.ZipFile(write_patch(tmp_path, jar)) as patch:
        assert patch.namelist() == []
