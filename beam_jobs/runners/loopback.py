"""gRPC servers on the loopback interface.

Beam's servers listen on all interfaces and run the functions that they receive, for anyone.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from ipaddress import ip_address
from typing import Any

import grpc
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

LOOPBACK = "localhost"


def servers_of(options: PipelineOptions) -> AbstractContextManager[None]:
    """`loopback_servers`, unless the user named workers that may be elsewhere."""
    portable = options.view_as(PortableOptions)
    external = portable.environment_type == "EXTERNAL"
    elsewhere = external and not is_loopback(str(portable.environment_config))
    return nullcontext() if elsewhere else loopback_servers()


@contextmanager
def loopback_servers() -> Iterator[None]:
    """Let gRPC servers made in the block listen on loopback instead of all interfaces.

    Whichever version of Beam makes them, and wherever it does. Other addresses are not changed.
    """
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
    """The address, on loopback if it names all interfaces.

    >>> on_loopback("[::]:8099"), on_loopback("10.0.0.1:8099")
    ('localhost:8099', '10.0.0.1:8099')
    """
    host, _, port = address.rpartition(":")
    try:
        everywhere = ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        everywhere = False
    return f"{LOOPBACK}:{port}" if everywhere else address


def is_loopback(address: str) -> bool:
    """Whether an address, which may be a URL, is on this machine's loopback.

    >>> is_loopback("localhost:50000"), is_loopback("http://[::1]:8081"), is_loopback("host:50000")
    (True, True, False)
    """
    host = re.sub(r"^https?://", "", address).rsplit(":", 1)[0]
    return host in (LOOPBACK, "127.0.0.1", "[::1]")
