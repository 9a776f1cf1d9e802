"""The sample of the classifier, and in which folds its texts occur, against a plain definition."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs.analysis import human_likeness
from paraloom.beam_jobs.io.shards import Unit, units
from paraloom.beam_jobs.transforms.duplicates import normalised
from paraloom.models.scorers.learned.human_classifier import fold_of
from tests.shards import ONE, cut


def corpus(rows: int) -> pa.Table:
    """Texts that repeat on either side, some but for case and punctuation."""
    rng = np.random.default_rng(2)
    texts = [f"text number {i}" for i in range(rows // 2)]
    variants = [*texts, *(f"Text number {i}." for i in range(rows // 2))]
    return pa.table(
        {
            "id": [f"id-{i:04d}" for i in range(rows)],
            "source": ["zdroj"] * rows,
            "reference": rng.choice(variants, rows).tolist(),
            "translation": rng.choice(variants, rows).tolist(),
        }
    )


def work(folder: Path, table: pa.Table, rows: int) -> list[Unit]:
    return units(cut(folder, table, rows), "key")


def plainly(table: pa.Table) -> list[list[int]]:
    """The folds of every text: of all pairs that have it, whatever its case and punctuation."""
    folds: dict[str, int] = {}
    fold = fold_of(table["reference"].combine_chunks()).tolist()
    sides = [normalised(table[s].combine_chunks()).to_pylist() for s in human_likeness._SIDES]
    for side in sides:
        for text, k in zip(side, fold, strict=True):
            folds[text] = folds.get(text, 0) | 1 << k
    return [[folds[text] for text in side] for side in sides]


def test_folds_of_every_text(tmp_path: Path) -> None:
    table = corpus(300)
    shards = work(tmp_path / "in", table, 50)
    two = ["--direct_num_workers", "2"]
    found = human_likeness.run(shards, str(tmp_path / "out"), two, seed=1)
    expected = plainly(table)
    assert found.select(["id", "reference", "translation"]).equals(
        table.select(["id", "reference", "translation"])
    )
    assert found["reference_folds"].to_pylist() == expected[0]
    assert found["translation_folds"].to_pylist() == expected[1]
    assert len(set(expected[0])) > 5


def test_a_part_of_a_large_corpus_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(human_likeness, "PAIRS", 100)
    table = corpus(800)
    expected = dict(zip(table["id"].to_pylist(), zip(*plainly(table), strict=True), strict=True))
    drawn = []
    for seed, rows in ((1, 1000), (1, 90), (2, 1000)):
        shards = work(tmp_path / f"{rows}", table, rows)
        found = human_likeness.run(shards, str(tmp_path / "out"), ONE, seed=seed)
        assert 60 < len(found) < 140
        for row in found.to_pylist():  # marked by the whole corpus, not by the sample
            assert (row["reference_folds"], row["translation_folds"]) == expected[row["id"]]
        drawn.append(found)
    assert drawn[0].equals(drawn[1])
    assert not drawn[0].equals(drawn[2])


def test_nothing_to_draw_from(tmp_path: Path) -> None:
    empty = work(tmp_path, corpus(2).slice(0, 0), 1)
    found = human_likeness.run(empty, str(tmp_path / "out"), ONE, seed=1)
    assert len(found) == 0
