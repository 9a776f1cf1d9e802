"""What translation jobs read and write: back-translation, and the sources of plain text."""

from typing import NamedTuple

import pyarrow as pa

from paraloom.beam_jobs.io import schema


class Direction(NamedTuple):
    """What a job translates, and what it makes of the translations.

    Attributes:
        job: its name.
        text: the column that is translated.
        output: the schema of its rows, without `schema.CANDIDATE`.
        added: the columns that it adds, with the names that `Translator.translate` gives them.
    """

    job: str
    text: str
    output: pa.Schema
    added: dict[str, str]


BACK = Direction(
    job="back_translate",
    text="source",
    output=schema.BACK_TRANSLATE,
    added={name: name for name in schema.BACK_TRANSLATE.names[len(schema.INGEST) :]},
)
"""Translates the source of every pair."""

PIVOT = Direction(
    job="pivot", text="reference", output=schema.INGEST, added={"source": "translation"}
)
"""Translates plain text into the language of the sources."""
