"""A small run with scores, for the tests of judging."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paraloom.beam_jobs.transforms.shares import Deciles
from tests.run_helpers import write_record
from tests.shards import accepted, bucketed_pairs

SCORES = ("unigram_f1", "length_ratio")


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """Write the manifest and the stage `bucket` of a run; `candidates` translations a source."""

    def write(
        rows: int = 400, *, shards: int = 3, candidates: int = 1, equal: int = 0, seed: int = 1
    ) -> Path:
        folder = tmp_path / f"run{rows}-{shards}-{candidates}-{equal}-{seed}"
        rng = np.random.default_rng(4)
        words = "a the dog cat boy girl runs sits on in red old street house".split()  # noqa: SIM905
        letters = random.Random(4)
        texts = [" ".join(letters.choices(words, k=7)) for _ in range(rows)]
        columns: dict[str, Any] = {
            "id": [f"p-{i // candidates}" for i in range(rows)],
            "source": [f"Věta {i}." for i in range(rows)],
            "reference": [f"{text} {i}" for i, text in enumerate(texts)],
            "translation": [
                f"{text} {i}" if i < equal else f"{text} so {i}" for i, text in enumerate(texts)
            ],
            "translation_score": -rng.exponential(0.4, rows),
            "candidate": [i % candidates for i in range(rows)],
            **{score: rng.random(rows) for score in SCORES},
        }
        table = bucketed_pairs(columns, SCORES, candidates=candidates > 1)
        bounds = [rows * i // shards for i in range(shards + 1)]
        for i in range(shards):
            part = table.slice(bounds[i], bounds[i + 1] - bounds[i])
            accepted(folder / "bucket", f"part-{i}", part)
        nothing_known = Deciles(rows=[0] * 10, lowest=[None] * 10, highest=[None] * 10)
        values = {
            "config": {
                "run": str(folder),
                "seed": seed,
                "input": {"format": "tsv", "paths": ["a.tsv"]},
            },
            "stages": {"bucket": {"deciles": dict.fromkeys(SCORES, nothing_known.model_dump())}},
        }
        write_record(folder, values)
        return folder

    return write
