"""gRPC servers that listen on the loopback interface instead of all interfaces.

By default, Beam's servers listen on all interfaces and execute functions from any sender.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import grpc

LOOPBACK = "localhost"


@contextmanager
def loopback_servers() -> Iterator[None]:
    """Apply `on_loopback` to the addresses of gRPC servers that are created in the block."""
    server = grpc.server

    def make(*arguments: Any, **options: Any) -> grpc.Server:
        made = server(*arguments, **options)
        add = made.add_insecure_port
        made.add_insecure_port = lambda address: add(on_loopback(address))
        return made

    grpc.server = make
    try:
        yield
    finally:
        grpc.server = server


def on_loopback(address: str) -> str:
    """Replace the host by `localhost` if it stands for all interfaces. Keep other addresses.

    >>> on_loopback("[::]:8099"), on_loopback("10.0.0.1:8099")
    ('localhost:8099', '10.0.0.1:8099')
    """
    host, _, port = address.rpartition(":")
    try:
        everywhere = ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        everywhere = False
    return f"{LOOPBACK}:{port}" if everywhere else address
