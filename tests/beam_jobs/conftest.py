"""Small stages of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard
from tests.shards import cut, filled

SCORE = ("translation_score",)


@pytest.fixture
def bucketed(tmp_path: Path) -> Callable[..., list[Shard]]:
    """Write pairs as the stage `bucket` leaves them, cut into shards."""

    def write(
        rows: list[dict[str, Any]], shard_rows: int = 4, folder: str = "bucket"
    ) -> list[Shard]:
        return cut(tmp_path / folder, filled(rows, schema.bucketed(SCORE)), shard_rows)

    return write


@pytest.fixture
def scored(tmp_path: Path) -> Callable[[np.ndarray, int], list[Shard]]:
    """Write one score a row as the stage `score` leaves it, cut into shards."""

    def write(score: np.ndarray, shard_rows: int) -> list[Shard]:
        rows = [{"translation_score": value} for value in score.tolist()]
        return cut(tmp_path / f"score-{shard_rows}", filled(rows, schema.scored(SCORE)), shard_rows)

    return write
