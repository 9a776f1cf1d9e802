"""Generates pairs for timings, in the form that back-translation writes.

Words are made up and drawn by Zipf's law. A translation is its reference with some words replaced
or dropped. Texts have 5 to 19 words, like captions.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import commit, content_key
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import write_vectors

WORDS = 20_000
_SYLLABLES = np.array([c + v for c in "bdfghklmnprstvz" for v in "aeiou"])


@cache
def vocabulary(seed: int = 0) -> pa.Array:
    """Return `WORDS` different made-up words."""
    rng = np.random.default_rng(seed)
    words: dict[str, None] = {}
    while len(words) < WORDS:
        words["".join(rng.choice(_SYLLABLES, rng.integers(1, 5)))] = None
    return pa.array(list(words))


def pairs(rows: int, first: int, seed: int = 0) -> pa.Table:
    """Return `rows` pairs in the schema `BACK_TRANSLATE`, numbered from `first`."""
    rng = np.random.default_rng([seed, first])
    words = vocabulary(seed)
    lengths = rng.integers(5, 20, rows)
    ends = np.cumsum(lengths)
    drawn = (rng.zipf(1.3, ends[-1]) - 1) % WORDS
    changed = drawn.copy()
    replaced = rng.random(len(drawn)) < rng.choice([0.0, 0.1, 0.3, 0.6], rows).repeat(lengths)
    changed[replaced] = (rng.zipf(1.3, replaced.sum()) - 1) % WORDS
    kept = rng.random(len(drawn)) > 0.05
    kept[ends - 1] = True  # so that no side is empty
    starts = np.concatenate([[0], ends])
    left = np.concatenate([[0], np.cumsum(kept)])[starts]
    reference = _sentences(words, drawn, starts)
    translation = _sentences(words, changed[kept], left)
    return pa.table(
        {
            "id": [f"generated-{i}" for i in range(first, first + rows)],
            "source": reference,
            "reference": reference,
            "translation": translation,
            "translation_score": pa.array(-rng.exponential(0.5, rows), pa.float32()),
            "translation_subwords": pa.array(lengths + 3, pa.int16()),
        },
        schema=schema.BACK_TRANSLATE,
    )


def _sentences(words: pa.Array, numbers: np.ndarray, offsets: np.ndarray) -> pa.Array:
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words.take(pa.array(numbers)))
    return pc.binary_join_element_wise(pc.binary_join(lists, " "), ".", "")


Changes = Mapping[int, Mapping[str, str]]
"""Texts that replace generated texts, by number of the row and by column."""


def changed(table: pa.Table, first: int, changes: Changes) -> pa.Table:
    """Apply changes to a table whose rows are numbered from `first`, and return the table."""
    rows = [{**row, **changes.get(n, {})} for n, row in enumerate(table.to_pylist(), first)]
    return pa.Table.from_pylist(rows, schema=table.schema)


def planted(texts: Sequence[Mapping[str, str]], rows: int) -> Changes:
    """Return changes that put texts into random rows. The order of the texts is kept.

    Raises:
        UserError: there are more texts than rows.
    """
    if rows < len(texts):
        raise UserError(f"{rows:,} rows are fewer than {len(texts):,} texts")
    places = np.random.default_rng(2).permutation(rows)[: len(texts)]
    return dict(zip(sorted(places.tolist()), texts, strict=True))


def write(
    folder: Path,
    rows: int,
    *,
    shard_rows: int,
    repeats: float = 0.0,
    changes: Changes | None = None,
) -> None:
    """Write `rows` pairs as finished shards of a stage.

    Args:
        repeats: the share of a shard's rows that repeat the texts of the previous shard.
    """
    before: pa.Table | None = None
    nothing = schema.rejected(schema.INGEST).empty_table()
    for index, first in enumerate(range(0, rows, shard_rows)):
        n = min(shard_rows, rows - first)
        name = f"part-{index:05d}"
        table = pairs(n, first)
        if before is not None and (repeated := int(repeats * n)):
            texts = before.slice(0, repeated).set_column(0, "id", table["id"].slice(0, repeated))
            table = pa.concat_tables([texts.cast(table.schema), table.slice(repeated)])
        before = table
        table = changed(table, first, changes) if changes else table.combine_chunks()
        outcome = [(name, table, nothing)]
        commit(str(folder), name, content_key(name), n, outcome, started=0.0)


def write_vectors_for(folder: Path, dim: int = 300) -> None:
    """Write random vectors of the made-up words to `vectors.txt`."""
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((WORDS, dim)).astype(np.float32)
    write_vectors(folder / "vectors.txt", vocabulary(), matrix)
