"""The schemas of the pair record after each stage, and of rejected rows."""

import pyarrow as pa


def _columns(**kinds: pa.DataType) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]


INGEST = pa.schema(_columns(id=pa.string(), source=pa.string(), reference=pa.string()))

BACK_TRANSLATE = pa.schema(
    [
        *INGEST,
        *_columns(
            translation=pa.string(), translation_score=pa.float32(), translation_subwords=pa.int16()
        ),
    ]
)

REASON = pa.field("reason", pa.string(), nullable=False)

INGEST_REJECTED = pa.schema([*_columns(id=pa.string(), row=pa.int64(), text=pa.string()), REASON])

SELECT_REJECTED = pa.schema([*_columns(id=pa.string()), REASON])


def scored(scorers: tuple[str, ...]) -> pa.Schema:
    """The schema after `score`; `translation_score` is added by `back_translate`."""
    tokens = _columns(reference_tokens=pa.int16(), translation_tokens=pa.int16())
    added = {s: pa.float32() for s in scorers if s not in BACK_TRANSLATE.names}
    return pa.schema([*BACK_TRANSLATE, *tokens, *_columns(**added)])


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
