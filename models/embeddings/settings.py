"""config.json of an encoder's folder, which may come from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.options import Count
from paraloom.models.structured import read_json

FORMAT = 1  # of the folder; bump when this code could not read it


class _Settings(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class HeadSettings(_Settings):
    """The arguments of `open_head`; sizes are among the other fields."""

    __pydantic_extra__: dict[str, Count | Literal[0]] = Field(init=False)

    name: str
    lowest: FiniteFloat
    highest: FiniteFloat


class Loading(_Settings):
    """How sentence-transformers loads the folder."""

    native: bool


class EncoderSettings(_Settings):
    """The content of config.json."""

    format: int
    options: dict[str, Any]
    vocabularies: dict[str, int]  # entries, by kind
    language: str = ENGLISH
    outputs: Count | None = None
    head: HeadSettings | None = None
    sentence_transformers: Loading


def read_settings(folder: Path) -> EncoderSettings:
    """Read config.json of an encoder's folder."""
    path = folder / "config.json"
    found = read_json(path, EncoderSettings, "the configuration of an encoder")
    if found.format != FORMAT:
        raise UserError(f"{path}: format {found.format}, this version reads {FORMAT}")
    return found
