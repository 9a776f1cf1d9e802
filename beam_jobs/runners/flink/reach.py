"""Requests to Flink's REST interface, and a check whether a port is open."""

import json
import socket
import urllib.request
from typing import Any


def get(master: str, path: str) -> dict[str, Any]:
    """A JSON answer of Flink's REST interface; OSError or ValueError if there is none."""
    found = json.loads(request(master, path))
    if not isinstance(found, dict):
        raise ValueError(f"{path}: not an object")
    return found


def request(master: str, path: str, method: str = "GET") -> bytes:
    """An answer of Flink's REST interface, requested without a proxy; OSError if there is none."""
    address = master if "://" in master else f"http://{master}"
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    asked = urllib.request.Request(f"{address.rstrip('/')}/{path}", method=method)
    with local.open(asked, timeout=5) as answer:
        return bytes(answer.read())


def reachable(address: str, *, timeout: float = 2.0) -> bool:
    """Whether something listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout):
            return True
    except (OSError, ValueError, OverflowError):
        return False
