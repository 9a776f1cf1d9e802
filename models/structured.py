"""YAML and JSON: errors of one line, checked against a type."""

import codecs
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from paraloom.models.errors import UserError, in_one_line

T = TypeVar("T")


def read_yaml(path: Path | str) -> Any:
    """The content of a YAML file; a duplicate key is an error."""
    with in_one_line(f"{path}: cannot be read"):
        text = Path(path).read_text(encoding="utf-8-sig")
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> Any:
    """The content of a YAML text, which comes from `where`; a duplicate key is an error."""
    try:
        return yaml.load(text, _Loader)
    except Exception as error:  # a date with a 13th month is a ValueError
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise UserError(f"{where}:{line} {problem}") from error


def read_json(path: Path, kind: type[T], what: str) -> T:
    """The content of a JSON file of a type, which may be a pydantic model.

    An error says that the file is not `what`.
    """
    with in_one_line(f"{path}: cannot be read"):
        data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        return parse_json(data, kind)
    except ValueError as error:
        raise UserError(f"{path}: not {what} ({error})") from error


def parse_json(data: bytes | str, kind: type[T]) -> T:
    """The content of a JSON text of a type."""
    try:
        return TypeAdapter(kind).validate_json(data)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{where}: {problem['msg']}".removeprefix(": ")) from None


def check_sizes(path: Path, values: Any, largest: Mapping[str, int]) -> None:
    """Check the whole numbers in a file's values, at any depth, against bounds.

    `largest` has bounds by patterns of keys; the first pattern that fits a key holds.
    """
    for inner in values if isinstance(values, list) else ():
        check_sizes(path, inner, largest)
    for key, value in values.items() if isinstance(values, dict) else ():
        most = next((bound for keys, bound in largest.items() if re.fullmatch(keys, key)), None)
        numbers = value if isinstance(value, list) else [value]
        if most is not None and any(isinstance(n, int) and n > most for n in numbers):
            raise UserError(f"{path}: {key} must be at most {most:,}")
        check_sizes(path, value, largest)


class _Loader(yaml.SafeLoader):
    """YAML in which a duplicate key is an error; plain YAML silently takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key.value}", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e-5 as text, for want of a point.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), "-+0123456789"
)
