"""Files that a configuration names in object storage, as copies on this machine.

What libraries open by themselves must be local: word vectors, phrase pairs, labelled pairs. The
bitext is not among it, which workers read in pieces wherever they are, nor the run, nor the
translation model, which they copy for themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from beam_jobs.io import remote
from beam_jobs.io.storage import MissingError, is_remote
from models.errors import UserError
from pipeline.config import Config

_STAY = ("run", "input", "nmt.model")


def localised(config: Config) -> Config:
    """The configuration with local paths in the place of remote ones.

    Raises:
        UserError: a file is not there, or cannot be copied; names the key.
    """

    def here(value: Any, key: str) -> Any:
        if key in _STAY:
            return value
        if is_dataclass(value) and not isinstance(value, type):
            prefix = f"{key}." if key else ""
            parts = {f.name: here(getattr(value, f.name), prefix + f.name) for f in fields(value)}
            changed = {n: part for n, part in parts.items() if part is not getattr(value, n)}
            return replace(value, **changed) if changed else value
        if isinstance(value, list) and any(isinstance(v, str) and is_remote(v) for v in value):
            return [here(item, f"{key}[{i}]") for i, item in enumerate(value)]
        if not isinstance(value, str) or not is_remote(value):
            return value
        try:
            return remote.local(value)
        except MissingError as error:
            raise UserError(f"{key}: {value} is not there") from error

    return here(config, "")  # type: ignore[no-any-return]


def remote_paths(config: Config) -> Iterator[str]:
    """All that a configuration names in object storage, the run first."""

    def named(value: Any) -> Iterator[str]:
        if isinstance(value, str) and is_remote(value):
            yield value
        elif isinstance(value, dict):
            yield from (path for item in value.values() for path in named(item))
        elif isinstance(value, list | tuple):
            yield from (path for item in value for path in named(item))
        elif is_dataclass(value):
            yield from (path for f in fields(value) for path in named(getattr(value, f.name)))

    return named(config)
