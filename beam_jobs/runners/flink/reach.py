"""Requests to Flink's REST interface, and a check whether a port is open."""

from __future__ import annotations

import json
import socket
import urllib.request
from typing import Any


def get(master: str, path: str, *, timeout: float = 5.0) -> dict[str, Any]:
    """A JSON answer of Flink's REST interface; OSError or ValueError if there is none."""
    address = master if "://" in master else f"http://{master}"
    local = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with local.open(f"{address.rstrip('/')}/{path}", timeout=timeout) as answer:
        found = json.load(answer)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: not an object")
    return found


def reachable(address: str, *, timeout: float = 2.0) -> bool:
    """Whether something listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout):
            return True
    except (OSError, ValueError, OverflowError):
        return False
