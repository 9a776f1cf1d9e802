"""Reading a configuration: YAML, environment variables, changes of the command line."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from models.errors import UserError
from models.printing import not_text
from models.structured import parse_yaml, read_yaml
from pipeline.config.options import Config
from pipeline.config.recorded import Written

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def read_config(path: str | Path | None, changes: Sequence[str] = ()) -> Config:
    """Read a YAML file, if there is one, and apply `key.sub=value` changes to it.

    Raises:
        UserError: names the file and the key.
    """
    values = {} if path is None else _read(path)
    for change in changes:
        _set(values, change)
    try:
        return _read_variables(values)
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


def recorded_config(values: Mapping[str, Any]) -> Config:
    """The configuration that a manifest holds; variables that are not set here stay names.

    Raises:
        ValueError: this version, or what is installed here, cannot read it.
    """
    return Config.of(_expand(values, "", os.environ))


def _read_variables(values: dict[str, Any]) -> Config:
    """The configuration, and what it is with the names of variables (`Config.recorded`).

    A variable stays a name where any text may stand. If only some texts may, such as the code of a
    language, its value is one of them, which cards need.
    """
    used = dict(_variables(values, ""))
    config = Config.of(_expand(values, "", used))
    shown = used
    for name in used:
        others = {other: value for other, value in shown.items() if other != name}
        with suppress(ValueError):
            Config.of(_expand(values, "", others))
            shown = others
    named = {value.rstrip("/"): f"${{{name}}}" for name, value in used.items() if name not in shown}
    folders = {value: name for value, name in named.items() if "/" in value}
    config._written = Written(Config.of(_expand(values, "", shown)).model_dump(), folders)
    return config


def _variables(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """The environment variables that texts name, and their values."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _variables(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _variables(item, f"{key}[{i}]")
    for name in _VARIABLE.findall(value) if isinstance(value, str) else ():
        if name not in os.environ:
            raise ValueError(f"{key}: the environment variable {name} is not set")
        yield name, os.environ[name]


def _expand(value: Any, key: str, variables: Mapping[str, str]) -> Any:
    """Replace `${NAME}` by the variable of that name in all text, which must be fit for paths."""
    if isinstance(value, Mapping):
        return {
            _checked(str(n), key): _expand(v, f"{key}.{n}".lstrip("."), variables)
            for n, v in value.items()
        }
    if isinstance(value, list):
        return [_expand(item, f"{key}[{i}]", variables) for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    return _checked(_VARIABLE.sub(lambda name: variables.get(name[1], name[0]), value), key)


def _checked(text: str, key: str) -> str:
    """The text; files could not have it in their names, nor JSON hold it, if it were not UTF-8."""
    if problem := not_text(text):
        raise ValueError(f"{key}: {text!r} {problem}")
    return text
