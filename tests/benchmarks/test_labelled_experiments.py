from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiments.cells import Inputs, read
from benchmarks.experiments.labelled import LabelledCell, kept, run, tables
from benchmarks.experiments.report import lines
from benchmarks.experiments.tables import Claim, Table
from models.embeddings.encoders import kinds
from models.embeddings.options import EmbeddingOptions
from models.embeddings.task_options import SimilarityOptions

WORDS = ("dog", "cat", "man", "woman", "runs", "sleeps", "eats", "sings")


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    random = np.random.default_rng(0)
    for name in ("sick", "sts/2015", "sts/2012"):
        (tmp_path / name).mkdir(parents=True)
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for name, rows in (("train", 60), ("trial", 20)):
        pairs = [(" ".join(random.choice(WORDS, 3)), " ".join(random.choice(WORDS, 3)))] * rows
        text = "".join(f"{i}\t{a}\t{b}\t{1 + i % 5}\tNEUTRAL\n" for i, (a, b) in enumerate(pairs))
        (tmp_path / "sick" / f"SICK_{name}.txt").write_text(head + text)
    for year in ("2012", "2015"):
        text = "".join(
            f"{i % 6}\t{' '.join(random.choice(WORDS, 3))}\t{' '.join(random.choice(WORDS, 3))}\n"
            for i in range(40)
        )
        (tmp_path / "sts" / year / "a.tsv").write_text(text)
    return Inputs(
        corpus=tmp_path / "corpus",
        phrases=tmp_path / "phrases",
        sts=tmp_path / "sts",
        sick=tmp_path / "sick",
        books=tmp_path / "books",
        folder=tmp_path / "results",
    )


def test_tables_name_encoders_and_claims_name_rows(inputs):
    for table in tables(inputs).values():
        for cell in table.rows.values():
            assert kinds(cell.options.model)
        for claim in table.claims:
            assert claim.better in table.rows and claim.worse in table.rows
        assert set(table.paper) <= set(table.rows)
        assert table.reported and "mse" not in table.reported


def test_a_cell_of_each_kind_of_data(inputs):
    options = EmbeddingOptions(
        task="similarity", similarity=SimilarityOptions(data=[str(inputs.sick)]), dim=8, epochs=2
    )
    sick = LabelledCell(options=options)
    sts = LabelledCell(
        options=replace(options, similarity=SimilarityOptions(data=[str(inputs.sts / "2012")]))
    )
    for cell, measures in (
        (sick, {"development", "pearson", "spearman", "mse"}),
        (sts, {"development", "pearson", "spearman", "mse", "sts_2015"}),
    ):
        path = kept(cell, 1, inputs)
        assert not path.exists()
        assert set(run(cell, 1, inputs, path)) == measures
        assert read(path).keys() == measures
        assert sorted(p.suffix for p in path.parent.iterdir()) == [".json"] * (1 + (cell is sts))
    names = {kept(sick, 1, inputs), kept(sick, 2, inputs), kept(sts, 1, inputs)}
    (inputs.sick / "SICK_trial.txt").write_text("sentence_A\tsentence_B\trelatedness_score\n")
    names.add(kept(sick, 1, inputs))
    assert len(names) == 4


def test_errors_have_three_digits_and_the_papers_figure_stands_beside():
    cell = LabelledCell(options=EmbeddingOptions())
    table = Table(
        "Title",
        {"A": cell},
        [Claim("A", "A")],
        measures={"development": "held out", "pearson": "r", "mse": "MSE"},
        paper={"A": {"mse": 0.2286}},
    )
    found = {cell: [{"development": 70.0, "pearson": 71.0, "mse": m} for m in (0.5, 0.6)]}
    assert lines(table, found) == [
        ("A", ["70.0 ± 0.0", "71.0 ± 0.0", "0.550 ± 0.071 (paper: 0.2286)"])
    ]
    assert table.reported == ["pearson"]
