"""Schemas of pairs after each stage, and of rejected rows."""

import pyarrow as pa
import pyarrow.compute as pc


def _columns(**kinds: pa.DataType) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]


TEXT = pa.schema(_columns(id=pa.string(), reference=pa.string()))
"""Schema after `ingest` of plain text, before `pivot` adds the source."""

INGEST = pa.schema(_columns(id=pa.string(), source=pa.string(), reference=pa.string()))

_TRANSLATION = _columns(
    translation=pa.string(), translation_score=pa.float32(), translation_subwords=pa.int16()
)
BACK_TRANSLATE = pa.schema([*INGEST, *_TRANSLATION])

CANDIDATE = pa.field("candidate", pa.int8(), nullable=False)
"""Index among the translations of the same source; only in runs with several candidates."""

GENERATOR = pa.field("generator", pa.string(), nullable=False)
"""Name of the generator that made the candidate; only in runs with `generators`."""

REASON = pa.field("reason", pa.string(), nullable=False)

MEANINGS = {
    "id": "unique id of the input row, from the bitext or computed from source and reference; all "
    "candidates for the row have this id",
    "source": "sentence in the foreign language",
    "reference": "{language} sentence of the bitext",
    "translation": "{language} translation of `source` by the translation model",
    "candidate": "number of this candidate among all candidates for the input row; if the "
    "translation model makes candidates, 0 is its best",
    "generator": "generator (translation or language model) that made `translation`",
    "translation_subwords": "number of subwords in `translation`, with the end-of-sentence symbol",
    "reference_tokens": "number of Moses tokens (in scripts without spaces: letters) in "
    "`reference`",
    "translation_tokens": "number of tokens in `translation`, counted as in `reference_tokens`",
}
"""Descriptions of all columns except scores, deciles and kept columns, for cards and pages."""

OF_PAIRS = {
    "id": "unique id of the row, from the input or computed from both sentences",
    "source": "empty",
    "reference": "first {language} sentence of a pair in the input",
    "translation": "second {language} sentence of the pair",
}
"""Descriptions that replace descriptions in `MEANINGS` if `input.format` is `pairs`."""

OF_GENERATORS = {"translation": "{language} sentence from the generator named in `generator`"}
"""The description that replaces the one in `MEANINGS` if language models make candidates."""

INGEST_REJECTED = pa.schema([*_columns(id=pa.string(), row=pa.int64(), text=pa.string()), REASON])


def translated(*, candidates: bool, generators: bool = False, nmt: bool = True) -> pa.Schema:
    """Schema after `back_translate`, or after `generate` if `generators` is true."""
    given = [*INGEST, *(_TRANSLATION if nmt else _TRANSLATION[:1])]  # without a model: no scores
    more = [CANDIDATE, GENERATOR] if generators else [CANDIDATE] if candidates else []
    return pa.schema([*given, *more])


def scored(scorers: tuple[str, ...], **variant: bool) -> pa.Schema:
    """Schema after `score`. `variant` has the arguments of `translated`."""
    tokens = _columns(reference_tokens=pa.int16(), translation_tokens=pa.int16())
    added = {s: pa.float32() for s in scorers if s not in BACK_TRANSLATE.names}
    return pa.schema([*translated(**{"candidates": False, **variant}), *tokens, *_columns(**added)])


def decile(score: str) -> str:
    """Name of the column with the deciles of a score."""
    return f"{score}_decile"


def bucketed(scorers: tuple[str, ...], **variant: bool) -> pa.Schema:
    """Schema after `bucket`. `variant` has the arguments of `translated`."""
    deciles = _columns(**{decile(score): pa.int8() for score in scorers})
    return pa.schema([*scored(scorers, **variant), *deciles])


def extended(given: pa.Schema, target: pa.Schema) -> pa.Schema:
    """Columns of `given`, followed by the columns that only `target` has."""
    fields = {of.name: of for of in (*given, *target)}
    return pa.schema(fields.values())


ROW = ("id", CANDIDATE.name)
"""Columns that identify a row. Only runs with several candidates have the column `candidate`."""


def has_candidates(table: pa.Table) -> bool:
    """Whether a table has the column `candidate`."""
    return CANDIDATE.name in table.column_names


def variant(table: pa.Table) -> dict[str, bool]:
    """Return which optional columns a table has, as arguments for `translated`."""
    return {
        "candidates": has_candidates(table),
        "generators": GENERATOR.name in table.column_names,
        "nmt": "translation_score" in table.column_names,
    }


def row_ids(table: pa.Table) -> pa.StringArray:
    """Return an identifier of each row: its id, followed by its `candidate` if there is one.

    >>> row_ids(pa.table({"id": ["a", "a"], "candidate": [0, 1]})).to_pylist()
    ['a 0', 'a 1']
    """
    ids = table["id"].combine_chunks()
    if not has_candidates(table):
        return ids
    number = table[CANDIDATE.name].combine_chunks().cast(pa.string())
    return pc.binary_join_element_wise(ids, number, " ")


def rejected(schema: pa.Schema) -> pa.Schema:
    """Schema of a stage's rejected rows: the columns of `schema`, and the reason."""
    return pa.schema([*schema, REASON])
