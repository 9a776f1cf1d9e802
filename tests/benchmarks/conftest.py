"""Data in small for the experiments."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiments.cells import Inputs
from paraloom.models.embeddings.datasets.similarity import ENTAILMENT

WORDS = ("dog", "cat", "man", "woman", "runs", "sleeps", "eats", "sings")


def inputs_in(place: Path, results: Path) -> Inputs:
    names = ("corpus", "phrases", "sts", "sick", "books")
    return Inputs(**{name: place / name for name in names}, folder=results)


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """Labelled pairs of a few words, made at random."""
    random = np.random.default_rng(0)
    for name in ("sick", "sts/2015", "sts/2012"):
        (tmp_path / name).mkdir(parents=True)
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for name, rows in (("train", 60), ("trial", 20)):
        pairs = [[" ".join(random.choice(WORDS, 3)) for _ in range(2)] for _ in range(rows)]
        text = "".join(
            f"{i}\t{a}\t{b}\t{1 + i % 5}\t{ENTAILMENT[i % 3]}\n" for i, (a, b) in enumerate(pairs)
        )
        (tmp_path / "sick" / f"SICK_{name}.txt").write_text(head + text)
    for year in ("2012", "2015"):
        text = "".join(
            f"{i % 6}\t{' '.join(random.choice(WORDS, 3))}\t{' '.join(random.choice(WORDS, 3))}\n"
            for i in range(40)
        )
        (tmp_path / "sts" / year / "a.tsv").write_text(text)
    return inputs_in(tmp_path, tmp_path / "results")
