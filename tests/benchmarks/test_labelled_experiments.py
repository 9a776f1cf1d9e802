from benchmarks.experiments.cells import Inputs, digest, load_scores
from benchmarks.experiments.labelled import LabelledCell, cell_path, run, tables
from benchmarks.experiments.report import judgements, lines
from benchmarks.experiments.tables import Claim, Table
from paraloom.papers.options import SimilarityOptions, SystemOptions


def test_a_cell_of_each_kind_of_data(inputs: Inputs) -> None:
    options = SystemOptions(
        task="similarity", similarity=SimilarityOptions(data=[str(inputs.sick)]), dim=8, epochs=2
    )
    sick = LabelledCell(options=options)
    sts = LabelledCell(
        options=options.replace(similarity=SimilarityOptions(data=[str(inputs.sts / "2012")]))
    )
    for cell, measures in (
        (sick, {"development", "pearson", "spearman", "mse"}),
        (sts, {"development", "pearson", "spearman", "mse", "sts_2015"}),
    ):
        path = cell_path(cell, 1, inputs)
        assert not path.exists()
        assert set(run(cell, 1, inputs, path)) == measures
        assert load_scores(path).keys() == measures
        assert sorted(p.suffix for p in path.parent.iterdir()) == [".json"] * (1 + (cell is sts))
    names = {cell_path(sick, 1, inputs), cell_path(sick, 2, inputs), cell_path(sts, 1, inputs)}
    (inputs.sick / "SICK_trial.txt").write_text("sentence_A\tsentence_B\trelatedness_score\n")
    digest.cache_clear()
    names.add(cell_path(sick, 1, inputs))
    assert len(names) == 4


def test_malstms_ablation_takes_parts_from_the_whole_model(inputs: Inputs) -> None:
    table = tables(inputs)["malstm"]
    assert [(c.better, c.worse, dict(c.printed)) for c in table.claims] == [
        ("MaLSTM", "without calibration", {"pearson": 1.0}),
        ("MaLSTM", "without pre-training", {"pearson": 2.0}),
        ("MaLSTM", "without synonyms", {"pearson": 4.0}),
    ]
    assert table.rows["without calibration"] is table.rows["MaLSTM"]
    options = table.rows["MaLSTM"].options
    section = options.malstm.replace(synonyms=None, pretrain=[])
    cell = LabelledCell(
        options=options.replace(malstm=section, initial_vectors=None, dim=8, hidden=4, epochs=2)
    )
    scores = run(cell, 1, inputs, cell_path(cell, 1, inputs))
    for measure in table.measures:
        assert measure in scores and f"uncalibrated {measure}" in scores
    assert scores["mse"] != scores["uncalibrated mse"]
    assert scores["entailment"] == scores["uncalibrated entailment"]
    found = {cell: [scores] for cell in table.rows.values()}
    ((heads, rows),) = judgements(table, found)  # no claim is about the other measures
    assert heads == ["what the paper says", "r"] and "paper: +1.0" in rows[0][1]


def test_errors_have_three_digits_and_the_papers_figure_stands_beside() -> None:
    cell = LabelledCell(options=SystemOptions())
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
