"""Data in small for the experiments."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments.cells import Inputs
from tests.labelled import WORDS, write_sick


def inputs_in(place: Path, results: Path) -> Inputs:
    names = ("corpus", "phrases", "sts", "sick", "books")
    paths: dict[str, Any] = {name: place / name for name in names}
    return Inputs(**paths, folder=results)


def write_corpus(folder: Path, random: np.random.Generator, rows: int, **more: Any) -> None:
    """Pairs of four words each."""
    folder.mkdir()
    names = "reference", "translation"
    sides = {side: [" ".join(random.choice(WORDS, 4)) for _ in range(rows)] for side in names}
    pq.write_table(pa.table({**sides, **more}), folder / "part-0.parquet")


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """Labelled pairs of a few words, made at random."""
    random = np.random.default_rng(0)
    write_sick(tmp_path / "sick", train=60, trial=20)
    for year in ("2012", "2015"):
        (tmp_path / "sts" / year).mkdir(parents=True)
        texts = ("\t".join(" ".join(random.choice(WORDS, 3)) for _ in range(2)) for _ in range(40))
        text = "".join(f"{i % 6}\t{two}\n" for i, two in enumerate(texts))
        (tmp_path / "sts" / year / "a.tsv").write_text(text)
    return inputs_in(tmp_path, tmp_path / "results")
