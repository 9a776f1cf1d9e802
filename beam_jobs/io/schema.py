"""The schemas of the pair record after each stage, and of rejected rows."""

from __future__ import annotations

import pyarrow as pa

INGEST = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("reference", pa.string(), nullable=False),
    ]
)

BACK_TRANSLATE = pa.schema(
    [
        *INGEST,
        pa.field("translation", pa.string(), nullable=False),
        pa.field("translation_score", pa.float32(), nullable=False),
        pa.field("translation_subwords", pa.int16(), nullable=False),
    ]
)

REASON = pa.field("reason", pa.string(), nullable=False)

INGEST_REJECTED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        REASON,
    ]
)

SELECT_REJECTED = pa.schema([pa.field("id", pa.string(), nullable=False), REASON])


def scored(scorers: tuple[str, ...]) -> pa.Schema:
    """The schema after `score`; `translation_score` is added by `back_translate`."""
    columns = [
        *BACK_TRANSLATE,
        pa.field("reference_tokens", pa.int16(), nullable=False),
        pa.field("translation_tokens", pa.int16(), nullable=False),
    ]
    names = {field.name for field in columns}
    columns += [pa.field(s, pa.float32(), nullable=False) for s in scorers if s not in names]
    return pa.schema(columns)


def decile(score: str) -> str:
    """The name of a score's decile column."""
    return f"{score}_decile"


def bucketed(scorers: tuple[str, ...]) -> pa.Schema:
    """The schema after `bucket`."""
    deciles = [pa.field(decile(s), pa.int8(), nullable=False) for s in scorers]
    return pa.schema([*scored(scorers), *deciles])


def rejected(schema: pa.Schema) -> pa.Schema:
    """The schema of the rows that a stage with input `schema` could not process."""
    return pa.schema([*schema, REASON])
