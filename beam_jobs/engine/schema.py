"""The schemas of the pair record after each stage, and of rejected rows."""

import pyarrow as pa
import pyarrow.compute as pc


def _columns(**kinds: pa.DataType) -> list[pa.Field]:
    return [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]


TEXT = pa.schema(_columns(id=pa.string(), reference=pa.string()))
"""After `ingest` of plain text; `pivot` adds the source."""

INGEST = pa.schema(_columns(id=pa.string(), source=pa.string(), reference=pa.string()))

BACK_TRANSLATE = pa.schema(
    [
        *INGEST,
        *_columns(
            translation=pa.string(), translation_score=pa.float32(), translation_subwords=pa.int16()
        ),
    ]
)

CANDIDATE = pa.field("candidate", pa.int8(), nullable=False)
"""Rank of a translation among all of its source, 0 the best; in runs that keep several."""

GENERATOR = pa.field("generator", pa.string(), nullable=False)
"""The name of what made the candidate; in runs with `generators`."""

REASON = pa.field("reason", pa.string(), nullable=False)

MEANINGS = {
    "id": "the id of the bitext, or one made of file and row; unique in the run, but that several "
    "translations of a source share it",
    "source": "sentence in the foreign language",
    "reference": "its {language} side in the bitext",
    "translation": "{language} translation of `source` by the model",
    "candidate": "number among the translations of `source`, 0 the best of the translation model",
    "generator": "name of what made `translation`",
    "translation_subwords": "subwords of `translation`, end of sentence included",
    "reference_tokens": "tokens of `reference`: Moses', or letters where no spaces separate words",
    "translation_tokens": "tokens of `translation`, the same way",
}
"""The columns that are no scores, in one line for cards and documents."""

INGEST_REJECTED = pa.schema([*_columns(id=pa.string(), row=pa.int64(), text=pa.string()), REASON])


def translated(*, candidates: bool, generators: bool = False, nmt: bool = True) -> pa.Schema:
    """The schema after `back_translate`, with or without several translations of a source.

    Args:
        generators: the schema after `generate`.
        nmt: whether there is a translation model, which scores all candidates.
    """
    given = BACK_TRANSLATE if nmt else pa.schema(list(BACK_TRANSLATE)[: len(INGEST) + 1])
    more = [CANDIDATE, GENERATOR] if generators else [CANDIDATE] if candidates else []
    return pa.schema([*given, *more])


def scored(scorers: tuple[str, ...], **variant: bool) -> pa.Schema:
    """The schema after `score`; `variant` as for `translated`, which adds `translation_score`."""
    tokens = _columns(reference_tokens=pa.int16(), translation_tokens=pa.int16())
    added = {s: pa.float32() for s in scorers if s not in BACK_TRANSLATE.names}
    return pa.schema([*translated(**{"candidates": False, **variant}), *tokens, *_columns(**added)])


def decile(score: str) -> str:
    """The name of a score's decile column."""
    return f"{score}_decile"


def bucketed(scorers: tuple[str, ...], **variant: bool) -> pa.Schema:
    """The schema after `bucket`; `variant` as for `translated`."""
    deciles = _columns(**{decile(score): pa.int8() for score in scorers})
    return pa.schema([*scored(scorers, **variant), *deciles])


def extended(given: pa.Schema, target: pa.Schema) -> pa.Schema:
    """A table's columns, with the user's kept ones, and after them the columns of `target`."""
    fields = {of.name: of for of in (*given, *target)}
    return pa.schema(fields.values())


ROW = ("id", CANDIDATE.name)
"""The columns that `row_ids` reads; the second is not in every run."""


def has_candidates(table: pa.Table) -> bool:
    """Whether a table holds several translations of a source."""
    return CANDIDATE.name in table.column_names


def variant(table: pa.Table) -> dict[str, bool]:
    """Which of the optional columns a table of candidates has, as `translated` takes it."""
    return {
        "candidates": has_candidates(table),
        "generators": GENERATOR.name in table.column_names,
        "nmt": "translation_score" in table.column_names,
    }


def row_ids(table: pa.Table) -> pa.StringArray:
    """What identifies a row in the corpus: its id, and its candidate number if there are several.

    >>> row_ids(pa.table({"id": ["a", "a"], "candidate": [0, 1]})).to_pylist()
    ['a 0', 'a 1']
    """
    ids = table["id"].combine_chunks()
    if not has_candidates(table):
        return ids
    number = table[CANDIDATE.name].combine_chunks().cast(pa.string())
    return pc.binary_join_element_wise(ids, number, " ")


def rejected(schema: pa.Schema) -> pa.Schema:
    """The schema of the rows that a stage with input `schema` could not process."""
    return pa.schema([*schema, REASON])
