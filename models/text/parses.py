"""Dependency parses from a spaCy pipeline."""

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError, in_one_line

_INSTALL = "python -m spacy download {} installs a pipeline of spaCy"
_UNUSED = ("ner", "entity_linker", "lemmatizer", "textcat", "textcat_multilabel", "spancat")


def find_pipeline(name: str) -> Path:
    """Return the folder of a pipeline, given its path or the name of an installed package."""
    from spacy.util import get_package_path, is_package

    folder = get_package_path(name) if is_package(name) else Path(name)
    if not (folder / "meta.json").is_file():
        raise UserError(f"{name}: no spaCy pipeline here; {_INSTALL.format(name)}")
    return folder


class Parser:
    """A spaCy pipeline with a parser. `name` is a package (`en_core_web_sm`) or a folder."""

    def __init__(self, name: str | Path) -> None:
        import spacy

        self.name = name = str(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about older pipelines and missing GPUs
            with in_one_line(f"spaCy cannot load {name}: {_INSTALL.format(name)}"):
                self.pipeline = spacy.load(name, exclude=_UNUSED)
                parses = self.pipeline("A dog runs .").has_annotation("DEP")
        if not parses:
            parts = ", ".join(self.pipeline.pipe_names) or "empty"
            raise UserError(
                f"the spaCy pipeline {name} does not parse (components: {parts}); choose a "
                "pipeline with a parser"
            )

    @property
    def language(self) -> str:
        """Language code of the pipeline, or `xx` for a multilingual pipeline."""
        return str(self.pipeline.lang)

    def parse(self, texts: Iterable[str]) -> Iterator[Any]:
        """Parse each text into a `Doc`."""
        yield from self.pipeline.pipe(texts, batch_size=256)
