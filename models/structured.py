"""Reading of YAML and JSON files. Errors are one line that names the file."""

import codecs
import re
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from paraloom.models.errors import UserError, in_one_line

T = TypeVar("T")


def read_yaml(path: Path | str) -> Any:
    """Read a YAML file. A duplicate key is an error."""
    with in_one_line(f"{path}: cannot be read"):
        text = Path(path).read_text(encoding="utf-8-sig")
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML. A duplicate key is an error. Errors name `where`, the origin of the text."""
    try:
        return yaml.load(text, _Loader)
    except Exception as error:  # for a date with month 13, yaml raises a ValueError
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise UserError(f"{where}:{line} {problem}") from error


def front_matter(path: Path) -> Any:
    """Read the YAML between two lines `---` at the beginning of a card, or return None."""
    with in_one_line(f"{path}: cannot be read"):
        text = path.read_text("utf-8-sig", errors="replace")
    found = re.match(r"\s*---\r?\n(.*?)\n---\s*$", text, re.DOTALL | re.MULTILINE)
    return parse_yaml(found[1], str(path)) if found else None


def read_json(path: Path, kind: type[T], what: str) -> T:
    """Read a JSON file as the type `kind`. The error message says that the file is not `what`."""
    with in_one_line(f"{path}: cannot be read"):
        data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        return parse_json(data, kind)
    except ValueError as error:
        raise UserError(f"{path}: not {what} ({error})") from error


def parse_json(data: bytes | str, kind: type[T]) -> T:
    """Parse JSON as the type `kind`. Raise a ValueError if the JSON does not fit the type."""
    try:
        return TypeAdapter(kind).validate_json(data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{where}: {problem['msg']}".removeprefix(": ")) from None


def settings_in(values: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key with its value, from mappings at any depth of JSON or YAML."""
    for inner in values if isinstance(values, list) else ():
        yield from settings_in(inner)
    for key, value in values.items() if isinstance(values, dict) else ():
        yield key, value
        yield from settings_in(value)


def check_sizes(path: Path, values: Any, largest: Mapping[str, int]) -> None:
    """Raise a UserError if an integer in a file's values, at any depth, is too large.

    `largest` maps patterns of keys to maximum values. The first pattern that matches applies.
    """
    for key, value in settings_in(values):
        most = next((bound for keys, bound in largest.items() if re.fullmatch(keys, key)), None)
        numbers = value if isinstance(value, list) else [value]
        if most is not None and any(isinstance(n, int) and n > most for n in numbers):
            raise UserError(f"{path}: {key} must be at most {most:,}")


_MOST = 10_000  # maximum number of values that YAML aliases may add


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys and aliases that expand to many values."""

    def construct_document(self, node: yaml.Node) -> Any:
        written: dict[yaml.Node, int] = {}
        if _values(node, written) - len(written) > _MOST:
            raise yaml.constructor.ConstructorError(
                None, None, f"its aliases expand to more than {_MOST:,} values", node.start_mark
            )
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):  # in "run: {{name}}", the key is {name}
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be text, not a list or mapping", key.start_mark
                )
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key.value}", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _values(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """Return the number of values in a node with expanded aliases. `known` caches the numbers."""
    if node not in known:
        known[node] = 0  # the count is not finished
        pairs = isinstance(node, yaml.MappingNode)
        inner = chain.from_iterable(node.value) if pairs else node.value
        inner = inner if isinstance(node, yaml.CollectionNode) else ()
        known[node] = 1 + sum(_values(each, known) for each in inner)
    elif not known[node]:
        raise yaml.constructor.ConstructorError(
            None, None, "an alias contains itself", node.start_mark
        )
    return known[node]


# Read 1e-5 as a number. YAML 1.1 reads it as text, because it has no decimal point.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), "-+0123456789"
)
