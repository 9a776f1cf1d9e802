"""Reading a configuration: YAML, environment variables, changes of the command line."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models.errors import UserError
from models.printing import not_text
from models.structured import parse_yaml, read_yaml
from pipeline.config.options import Config


def read_config(path: str | Path | None, changes: Sequence[str] = ()) -> Config:
    """Read a YAML file, if there is one, and apply `key.sub=value` changes to it.

    Raises:
        UserError: names the file and the key.
    """
    values = {} if path is None else _read(path)
    for change in changes:
        _set(values, change)
    try:
        return Config.of(_expand(values, ""))
    except ValueError as error:
        raise UserError(f"{path}: {error}" if path else str(error)) from error


def _read(path: str | Path) -> dict[str, Any]:
    values = read_yaml(path)
    if not isinstance(values, dict):
        raise UserError(f"{path}: not a configuration (key: value)")
    return values


def _set(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise UserError(f"--set {change}: must be key.sub=value")
    *sections, last = key.split(".")
    for section in sections:
        if values.get(section) is None:
            values[section] = {}
        values = values[section]
        if not isinstance(values, dict):
            raise UserError(f"--set {change}: {section} has no keys below it")
    values[last] = parse_yaml(text, f"--set {change}")


def _expand(value: Any, key: str) -> Any:
    """Replace `${NAME}` by the environment variable in all text, which must be fit for paths."""
    if isinstance(value, Mapping):
        return {
            _checked(str(n), key): _expand(v, f"{key}.{n}" if key else str(n))
            for n, v in value.items()
        }
    if isinstance(value, list):
        return [_expand(item, f"{key}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    for name in re.findall(r"\$\{(\w+)\}", value):
        if name not in os.environ:
            raise ValueError(f"{key}: the environment variable {name} is not set")
    expanded = re.sub(r"\$\{(\w+)\}", lambda found: os.environ[found.group(1)], value)
    return _checked(expanded, key)


def _checked(text: str, key: str) -> str:
    """The text; files could not have it in their names, nor JSON hold it, if it were not UTF-8."""
    if problem := not_text(text):
        raise ValueError(f"{key}: {text!r} {problem}")
    return text
