"""What a run records of its configuration: no environment variable, no credential."""

import re
from collections.abc import Mapping
from typing import Any

_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"\b(https?://[^\s?]*)\?[^\s,;)]*")


def recorded(value: Any) -> Any:
    """JSON values in which no text, but for keys, has a credential."""
    if isinstance(value, Mapping):
        return {name: recorded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [recorded(item) for item in value]
    return without_credentials(value) if isinstance(value, str) else value


def without_credentials(text: str) -> str:
    """A text in which addresses have neither a user nor, on the web, a query.

    >>> without_credentials("see https://me:word@host/a?token=x, s3://b/part-?.gz")
    'see https://host/a, s3://b/part-?.gz'
    """
    return _QUERY.sub(r"\1", _USER.sub("", text))
