"""Reading a configuration: YAML, environment variables, changes of the command line."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from models.embeddings.options import HALVED, halved
from models.errors import UserError
from models.printing import not_text, say
from models.structured import parse_yaml, read_yaml
from pipeline.config.options import Config

RENAMED_KEYS = {
    "embeddings.phrases.drawn": "embeddings.phrases.samples",
    "embeddings.phrases.share": "embeddings.phrases.fraction",
}
"""Old dotted keys that this version still reads, and their new names in the same section."""
REMOVED_KEYS = {
    "sample": "this section was removed, the sample is in pipeline/sample now; remove the section "
    "and name its files in input.paths, score.phrases, select.labelled and evaluate.sts as "
    "configs/sample.yaml does",
}
"""Dotted keys of earlier versions that have no successor, and what to write instead."""


def read_config(path: str | Path | None, changes: Sequence[str] = ()) -> Config:
    """Read a YAML file, if there is one, and apply `key.sub=value` changes to it.

    Raises:
        UserError: names the file and the key.
    """
    values = {} if path is None else _read(path)
    for change in changes:
        _set(values, change)
    try:
        _replace_old_keys(values)
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


def _replace_old_keys(values: dict[str, Any]) -> None:
    for key, remedy in REMOVED_KEYS.items():
        if _last(key) in _section(values, key):
            raise ValueError(f"{key}: {remedy}")
    for old, new in RENAMED_KEYS.items():
        section, name, successor = _section(values, old), _last(old), _last(new)
        if name in section:
            if successor in section:
                raise ValueError(f"{old}: is the old name of {new}, which is set too; remove {old}")
            section[successor] = section.pop(name)
            say(f"paraloom: {old} is now called {new}; please rename it")
    section = _section(values, "embeddings.l2")
    former = [name for name in HALVED if name in section]
    if former:
        values["embeddings"] = section = halved(section)
    for name in former:
        new = HALVED[name]
        line = yaml.safe_dump({new: section[new]}).strip()
        say(
            f"paraloom: embeddings.{name} is replaced by embeddings.{new}, which is half as large; "
            f"please write {line}"
        )


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _section(values: dict[str, Any], key: str) -> dict[str, Any]:
    """The section that holds a dotted key, empty if it is not there."""
    for name in key.split(".")[:-1]:
        inner = values.get(name)
        values = inner if isinstance(inner, dict) else {}
    return values


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
