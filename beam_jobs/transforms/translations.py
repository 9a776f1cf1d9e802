"""Translations joined to the rows that they belong to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_jobs.directions import Direction
from beam_jobs.io import schema


def with_translations(
    table: pa.Table, translations: pa.RecordBatch, candidates: int, direction: Direction
) -> tuple[pa.Table, pa.Table]:
    """The rows that were translated, and those that were not, with the reason.

    Args:
        translations: by `Translator.translate`, `candidates` for each row of the table.
    """
    if candidates > 1:
        rows, number = by_candidate(len(table), candidates)
        table = table.take(pa.array(rows)).append_column(schema.CANDIDATE, number)
    return join_translations(table, translations, direction)


def by_candidate(sources: int, candidates: int) -> tuple[np.ndarray, pa.Array]:
    """The source of every translation, and its number among those of the source."""
    number = np.tile(np.arange(candidates, dtype=np.int8), sources)
    return np.repeat(np.arange(sources), candidates), pa.array(number)


def join_translations(
    table: pa.Table, translations: pa.Table | pa.RecordBatch, direction: Direction
) -> tuple[pa.Table, pa.Table]:
    """The translated pairs, and those without a translation, with the reason; rows are aligned."""
    given = table.schema
    for name, of in direction.added.items():
        table = table.append_column(name, translations[of])
    # What the translator calls a source is the reference of plain text.
    reason = pc.replace_substring_regex(
        translations["reason"], r"^(empty )?source\b", rf"\1{direction.text}"
    )
    more = [schema.CANDIDATE] if schema.has_candidates(table) else []
    target = pa.schema([*direction.output, *more])
    accepted = table.filter(reason.is_null()).select(target.names).cast(target)
    rejected = table.append_column("reason", reason).filter(reason.is_valid())
    refused = schema.rejected(given)
    return accepted, rejected.select(refused.names).cast(refused)
