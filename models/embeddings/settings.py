"""config.json of an encoder's folder, which may come from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from models.embeddings.options import EmbeddingOptions
from models.errors import UserError
from models.languages import ENGLISH
from models.options import Count
from models.structured import read_json

FORMAT = 1  # of the folder; bump when this code could not read it
_FORMER_PHRASES = {"split": "phrases", "dropout": 0.0, "train_words": True}
"""How models of version 1 of task `phrases` were trained."""


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

    native: bool = False


class EncoderSettings(_Settings):
    """The content of config.json."""

    format: int
    options: dict[str, Any]
    vocabularies: dict[str, int]  # entries, by kind
    language: str = ENGLISH
    outputs: Count | None = None
    max_words: Count | None = None
    divided_by_length: bool = False
    task_version: int | None = None
    head: HeadSettings | None = None
    sentence_transformers: Loading = Loading()

    def encoder_options(self) -> EmbeddingOptions:
        """The options that the encoder was trained with.

        Those of an earlier version's training have other values than today's defaults.

        Raises:
            ValueError: they are not those of an encoder.
        """
        values = dict(self.options)
        phrases = values.get("phrases")
        if isinstance(phrases, dict) and self.task_version is None:
            values["phrases"] = {**_FORMER_PHRASES, **phrases}
        return EmbeddingOptions.of(values)


def read_settings(folder: Path) -> EncoderSettings:
    """Read config.json of an encoder's folder.

    Raises:
        UserError: it cannot be read, has another format, or is not that of an encoder.
    """
    path = folder / "config.json"
    found = read_json(path, EncoderSettings, "the configuration of an encoder")
    if found.format != FORMAT:
        raise UserError(f"{path}: format {found.format}, this version reads {FORMAT}")
    return found
