"""Small stages of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard
from tests.shards import cut


@pytest.fixture
def bucketed(tmp_path: Path) -> Callable[..., list[Shard]]:
    """Write pairs as the stage `bucket` leaves them, cut into shards."""

    def write(
        rows: list[dict[str, Any]], shard_rows: int = 4, folder: str = "bucket"
    ) -> list[Shard]:
        filled = [
            {
                "id": f"id-{i}",
                "source": "zdroj",
                "translation_score": -0.5,
                "translation_subwords": 3,
                "reference_tokens": 3,
                "translation_tokens": 3,
                "translation_score_decile": 0,
                **row,
            }
            for i, row in enumerate(rows)
        ]
        form = schema.bucketed(("translation_score",))
        return cut(tmp_path / folder, pa.Table.from_pylist(filled, form), shard_rows)

    return write


@pytest.fixture
def scored(tmp_path: Path) -> Callable[[np.ndarray, int], list[Shard]]:
    """Write one score a row as the stage `score` leaves it, cut into shards."""

    def write(score: np.ndarray, shard_rows: int) -> list[Shard]:
        form = schema.scored(("translation_score",))
        table = pa.table(
            {
                "id": [f"id-{i}" for i in range(len(score))],
                "source": ["zdroj"] * len(score),
                "reference": ["reference"] * len(score),
                "translation": ["translation"] * len(score),
                "translation_score": score,
                "translation_subwords": [2] * len(score),
                "reference_tokens": [1] * len(score),
                "translation_tokens": [1] * len(score),
            }
        ).cast(form)
        return cut(tmp_path / f"score-{shard_rows}", table, shard_rows)

    return write
