"""What a run records of its configuration: no environment variable, no credential."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"\b(https?://[^\s?]*)\?[^\s,;)]*")


@dataclass(frozen=True, slots=True)
class Written:
    """A configuration as it was written."""

    keys: dict[str, Any]  # all of them, with `${NAME}` where any text may stand
    folders: dict[str, str] = field(default_factory=dict)  # `${NAME}` by the path it stands for

    def recorded(self) -> dict[str, Any]:
        """The keys for the manifest."""
        return {name: _map_texts(of, without_credentials) for name, of in self.keys.items()}

    def by_names(self, values: Any) -> Any:
        """JSON values in which paths have the names of the variables that they begin with.

        >>> Written({}, {"/data": "${DATA}"}).by_names(["/data/a.gz", "IDF of /data/idf", "/data2"])
        ['${DATA}/a.gz', 'IDF of ${DATA}/idf', '/data2']
        """
        if not self.folders:
            return values
        known = "|".join(map(re.escape, sorted(self.folders, key=len, reverse=True)))
        found = re.compile(rf"(?<!\S)(?:{known})(?![^/\s])")
        return _map_texts(values, lambda text: found.sub(lambda of: self.folders[of[0]], text))


def without_credentials(text: str) -> str:
    """A text in which addresses have neither a user nor, on the web, a query.

    >>> without_credentials("see https://me:word@host/a?token=x, s3://b/part-?.gz")
    'see https://host/a, s3://b/part-?.gz'
    """
    return _QUERY.sub(r"\1", _USER.sub("", text))


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """JSON values with every text, but for keys, replaced by `change(text)`."""
    if isinstance(value, Mapping):
        return {name: _map_texts(inner, change) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return change(value) if isinstance(value, str) else value
