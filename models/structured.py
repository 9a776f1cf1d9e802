"""YAML and JSON that others may have written: bounded in size and depth, checked against a type."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from paraloom.models.errors import UserError
from paraloom.models.files import read_regular, reading_errors

LARGEST = 1 << 20
"""Characters of a YAML text, and its values after aliases are replaced by what they stand for."""

DEEPEST = 50
"""Levels of a YAML text, after aliases are replaced, too."""

_DIGITS = 1_000  # Python prints no number of more than 4,300, and long ones take long to read

T = TypeVar("T")


def read_yaml(path: Path | str) -> Any:
    """The content of a YAML file; `parse_yaml`'s errors, and those of a file that is not text."""
    try:
        with Path(path).open(encoding="utf-8") as stream:
            text = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        unreadable = isinstance(error, OSError)
        reason = getattr(error, "strerror", None) if unreadable else "not UTF-8"
        raise UserError(f"{path}: cannot be read ({reason or error})") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> Any:
    """The content of a YAML text; a duplicate key is an error.

    Args:
        where: the text comes from, for errors.
    """
    if len(text) > LARGEST:
        raise UserError(f"{where}: longer than {LARGEST:,} characters")
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        if _measure(root, {})[0] > LARGEST:
            raise UserError(f"{where}: its aliases stand for more than {LARGEST:,} values")
        return loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise UserError(f"{where}:{line} {problem}") from error
    except (ValueError, TypeError) as error:  # a date with a 13th month, a list as a key
        raise UserError(f"{where}: {' '.join(str(error).split())}") from error
    except (LookupError, AttributeError, OverflowError) as error:  # `!!bool maybe`
        raise UserError(f"{where}: a value does not have the type that is given for it") from error


def read_json(path: Path, kind: type[T], what: str) -> T:
    """The content of a JSON file of a type, which may be a pydantic model.

    Args:
        what: the file is, for errors.
    """
    with reading_errors(path):
        data = read_regular(path)
    try:
        return parse_json(data, kind)
    except ValueError as error:
        raise UserError(f"{path}: not {what} ({error})") from error


def parse_json(data: bytes | str, kind: type[T]) -> T:
    """The content of a JSON text of a type."""
    try:
        return TypeAdapter(kind).validate_json(data)
    except ValidationError as error:
        raise ValueError(_first(error)) from None


def check_numbers(values: Any) -> None:
    """Check that whole numbers, at any depth, fit in 64 bits: no float holds a very long one."""
    inner = [values]
    while inner:
        match inner.pop():
            case dict() as found:
                inner.extend(found.values())
            case list() as found:
                inner.extend(found)
            case int() as number if not -(2**63) <= number < 2**63:
                raise ValueError("a number is too large")


def check_sizes(path: Path, values: Any, largest: Mapping[str, int]) -> None:
    """Check the whole numbers in a file's values, at any depth, against bounds.

    Args:
        largest: bounds, by a pattern of keys; the first that fits a key holds.
    """
    for inner in values if isinstance(values, list) else ():
        check_sizes(path, inner, largest)
    for key, value in values.items() if isinstance(values, dict) else ():
        most = next((bound for keys, bound in largest.items() if re.fullmatch(keys, key)), None)
        numbers = value if isinstance(value, list) else [value]
        if most is not None and any(isinstance(n, int) and n > most for n in numbers):
            raise UserError(f"{path}: {key} must be at most {most:,}")
        check_sizes(path, value, largest)


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    at = ".".join(map(str, problem["loc"]))
    return f"{at}: {problem['msg']}" if at else problem["msg"]


class _Loader(yaml.SafeLoader):
    """YAML in which a duplicate key is an error; plain YAML silently takes the last one."""

    depth = 0

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > _DIGITS:
            problem = f"a number of more than {_DIGITS} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return int(super().construct_yaml_int(node))

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        if self.depth > DEEPEST:
            problem = f"nested more than {DEEPEST} levels deep"
            raise yaml.composer.ComposerError(None, None, problem, self.get_mark())
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key.value}", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
# YAML 1.1 reads 1e-5 as text, for want of a point.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), "-+0123456789"
)


def _measure(node: yaml.Node, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The values in a node and its levels, those that aliases stand for included."""
    if (found := known.get(id(node))) is not None:
        if not found[0]:
            raise ValueError("an alias stands for a value that holds it")
        return found
    known[id(node)] = 0, 0
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inner = [each for item in node.value for each in item]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    measured = [_measure(each, known) for each in inner]
    values = 1 + sum(size for size, _ in measured)
    levels = 1 + max((depth for _, depth in measured), default=0)
    if levels > DEEPEST + 1:  # a value without inner ones is a level, too
        raise ValueError(f"nested more than {DEEPEST} levels deep through aliases")
    known[id(node)] = values, levels
    return values, levels
