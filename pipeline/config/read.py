"""Reads a configuration from YAML, environment variables and changes on the command line."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.printing import not_text
from paraloom.models.structured import parse_yaml, read_yaml
from paraloom.pipeline.config.options import Config

SAMPLE = Path(__file__).resolve().parents[1] / "sample"
"""The folder of the packaged sample. In a configuration, `${PARALOOM_SAMPLE}` is this folder."""


def read_config(path: str | Path | None, changes: Sequence[str] = (), name: str = "") -> Config:
    """Read a configuration from a YAML file, and apply changes to it.

    Args:
        path: a YAML file, "sample" for the packaged sample, or None for an empty configuration.
        changes: `key.sub=value` sets a key, and `key.sub+=value` appends to a list.
        name: the named selection to which changes of `select` apply, or "" for the main corpus.
    """
    if is_sample(path):
        path = SAMPLE / "sample.yaml"
    values = {} if path is None else read_yaml(path)
    if not isinstance(values, dict):
        raise UserError(f"{path}: not a configuration; it must consist of lines `key: value`")
    return parse_config(values, changes, name, where=path)


def is_sample(path: str | Path | None) -> bool:
    """Whether the path is "sample" and no file has this name."""
    return path == "sample" and not Path(path).exists()


def parse_config(
    values: dict[str, Any],
    changes: Sequence[str] = (),
    name: str = "",
    *,
    where: str | Path | None = None,
) -> Config:
    """Make a configuration from the values of a YAML file. `where` names the file in errors."""
    values = deepcopy(values)  # the changes must not alter the caller's mapping
    own = [change for change in changes if name and change.startswith("select.")]
    select = values.get("select") or {}
    if own:
        try:
            named = select.get("named") or {}
            values = {**values, "select": deepcopy({**select, **(named.get(name) or {})})}
        except (AttributeError, TypeError):  # a section is not a mapping; the error below says so
            own = []
    for change in changes:
        _set(values, change)
    if own:
        differs = {k: v for k, v in values["select"].items() if k not in select or v != select[k]}
        values["select"] = {**select, "named": {**named, name: differs}}
        changes = [c if c not in own else f"select.named.{name}.{c[7:]}" for c in changes]
    try:
        return _with_variables(values)
    except ValueError as error:
        at = str(error).partition(":")[0]
        changed = [change.partition("=")[0].removesuffix("+") for change in changes]
        both = [pair for key in changed for pair in ((at, key), (key, at))]
        if any(re.match(rf"{re.escape(section)}(?!\w)", key) for key, section in both):
            raise UserError(f"--set {error}") from error
        raise UserError(f"{where}: {error}" if where else str(error)) from error


def _set(values: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    key = key.strip()
    if not equals or not key:
        raise UserError(f"--set {change}: must be key.sub=value or key.sub+=value")
    *sections, last = key.removesuffix("+").split(".")
    for section in sections:
        if values.get(section) is None:
            values[section] = {}
        values = values[section]
        if not isinstance(values, dict):
            raise UserError(f"--set {change}: {section} has no keys below it")
    value = parse_yaml(text, f"--set {change}")
    if key.endswith("+"):
        before = values.get(last) or []
        before, more = ([v] if not isinstance(v, list) else v for v in (before, value))
        value = before + more
    values[last] = value


def _with_variables(values: dict[str, Any]) -> Config:
    """Make a configuration in which the value of the environment variable NAME replaces `${NAME}`.

    `Config.written` contains `${NAME}` itself, or the value if a key with this variable does not
    accept the text `${NAME}` (for instance, because it is no language code). Variables in the last
    part of `run` are always replaced, because cards show this part.
    """
    shown: dict[str, str] = {}

    def look_up(name: str, key: str) -> str:
        return shown.setdefault(name, _variable(name, key))

    def keep(name: str, _: str) -> str:
        return shown.get(name, f"${{{name}}}")

    config = Config.of(_expand(values, "", look_up))
    for key, path in config.files().items():
        if not path.strip():  # for example, if a variable is empty
            raise ValueError(f"{key}: is empty; give it a value, or remove it")
    written = config
    for name in list(shown):
        value = shown.pop(name)
        try:
            written = Config.of(_expand(values, "", keep))
        except ValueError:
            shown[name] = value
    parts = (of.run.rstrip("/").rpartition("/") for of in (written, config))
    (place, slash, _), (*_, name) = parts
    config._written = {**written.model_dump(), "run": f"{place}{slash}{name}"}
    return config


def expanded(values: Any, key: str) -> Any:
    """Replace `${NAME}` in recorded values of a key by the environment variable NAME."""
    return _expand(values, key, _variable)


def _variable(name: str, key: str) -> str:
    environment = {"PARALOOM_SAMPLE": str(SAMPLE), **os.environ}
    if name not in environment:
        raise ValueError(f"{key}: the environment variable {name} is not set")
    return environment[name]


def _expand(value: Any, key: str, look_up: Callable[[str, str], str]) -> Any:
    if isinstance(value, Mapping):
        if odd := [n for n in value if not isinstance(n, str) and type(n) is not int]:
            raise ValueError(
                f"{key}.{odd[0]}: put it in quotes, since YAML does not read it as text".lstrip(".")
            )
        return {
            _checked(str(n), key): _expand(v, f"{key}.{n}".lstrip("."), look_up)
            for n, v in value.items()
        }
    if isinstance(value, list):
        return [_expand(item, f"{key}[{i}]", look_up) for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    text = re.sub(r"\$\{(\w+)\}", lambda found: look_up(found[1], key), value)
    return _checked(text, key)


def _checked(text: str, key: str) -> str:
    if problem := not_text(text):
        raise ValueError(f"{key}: {text!r} {problem}")
    return text
