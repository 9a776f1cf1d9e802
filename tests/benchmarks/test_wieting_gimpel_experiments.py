"""The tables of Wieting & Gimpel 2017: settings, figures and directions as printed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import revisiting, supervised
from benchmarks.experiments.cells import Cell, Inputs, cell_path, run
from benchmarks.experiments.labelled import LabelledCell
from benchmarks.experiments.report import judgements, write
from benchmarks.experiments.revisiting import CorrelationCell
from benchmarks.experiments.tables import Table
from paraloom.models.embeddings.encoders import check_encoder
from paraloom.models.text.vectors import write_vectors
from tests.benchmarks.conftest import WORDS

NOWHERE = Inputs(**dict.fromkeys(("corpus", "phrases", "sts", "sick", "books", "folder"), Path()))
TABLES = {**revisiting.tables(NOWHERE), **supervised.tables(NOWHERE)}


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_cells_and_figures_and_claims_name_rows(name: str) -> None:
    table = TABLES[name]
    for row, cell in table.rows.items():
        for of in [cell.first, cell.second] if isinstance(cell, CorrelationCell) else [cell]:
            check_encoder(of.options)
        of_paper = row in table.paper
        ours = "(ours)" in row or "no tags" in row or "without a gate" in row
        assert of_paper is not ours, row
    assert set(table.paper) <= set(table.rows)
    for claim in table.claims:
        assert claim.better in table.rows and claim.worse in table.rows
        assert table.rows[claim.better] != table.rows[claim.worse]


@pytest.mark.parametrize("name", ["wg1", "wg2", "wg3", "wg4"])
def test_settings_of_transfer(name: str) -> None:
    """4.1.2 and 4.2."""
    for row, cell in TABLES[name].rows.items():
        options = cell.options
        assert (options.dim, options.batch_size, options.mega_batch) == (300, 100, 1)
        assert options.negatives == "same" and options.margin in (0.4, 0.6, 0.8)
        assert options.learning_rate == 0.001 and options.cell == "peephole"
        assert options.epochs == (7 if options.model == "word-avg" else 1), row
        assert options.lambda_w in (1e-5, 0) and options.lambda_c in (1e-3, 1e-4, 1e-5, 1e-6, 0)
        for rate in (options.dropout, options.word_dropout):
            assert rate in (0, 0.2, 0.4, 0.6)
        assert options.scramble in (0, 0.25, 0.5, 0.75)


def test_table_4_has_the_sets_that_are_there(inputs: Inputs) -> None:
    for year, name in (("2013", "OnWN"), ("2013", "FNWN"), ("2012", "MSRpar")):
        (inputs.sts / year).mkdir(exist_ok=True)
        (inputs.sts / year / f"{name}.tsv").write_text("1\ta\tb\n")
    table = revisiting.tables(inputs)["wg4"]
    assert {"STS 2013 FNWN", "STS 2012 MSRpar", "STS 2012"} < set(table.measures)
    assert "STS 2012 MSRvid" not in table.measures
    assert table.paper["AVG"]["STS 2013 OnWN"] == 72.8 and table.paper["GRAN"]["sick"] == 72.9
    assert [claim.printed for claim in table.claims] == [
        {"STS 2013 OnWN": 8.4, "STS 2013 FNWN": 3.0},
        {"STS 2013 OnWN": 8.6, "STS 2013 FNWN": 5.4},
    ]


def test_universal_encoders_are_those_of_tables_2_and_3(inputs: Inputs) -> None:
    """AVG without regularisers, the others with dropout and scrambling (4.3)."""
    for name, regularised in (("AVG", False), ("LSTM Avg", True), ("GRAN", True)):
        options = supervised._universal(name, inputs)
        assert bool(options.dropout) is bool(options.scramble) is regularised
    starts = {
        cell.options.similarity.start
        for cell in supervised.tables(inputs)["wg8-sick"].rows.values()
        if isinstance(cell, LabelledCell) and cell.options.similarity
    }
    assert len(starts) == 4 and None in starts


def test_the_trial_pairs_choose_the_epoch_if_there_are_test_pairs(inputs: Inputs) -> None:
    def held_out(name: str) -> set[float | None]:
        rows = supervised.tables(inputs)[name].rows.values()
        return {cell.options.similarity.held_out for cell in rows}

    assert held_out("wg5-sick") == {0.1}
    (inputs.sick / "SICK_test_annotated.txt").write_text("x")
    assert held_out("wg5-sick") == {None} and held_out("wg5-sts") == {0.1}
    assert supervised.tables(inputs)["wg5-sick"].measures["pearson"] == "SICK test"


def test_a_cell_and_its_table(inputs: Inputs, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    inputs.corpus.mkdir()
    sides = [[" ".join(random.choice(WORDS, 4)) for _ in range(60)] for _ in range(2)]
    table = pa.table(dict(zip(("reference", "translation"), sides, strict=True)))
    pq.write_table(table, inputs.corpus / "part-0.parquet")
    inputs.folder.mkdir()
    vectors = random.standard_normal((len(WORDS), 4)).astype(np.float32)
    write_vectors(inputs.vectors, list(WORDS), vectors)
    (inputs.sts / "2013").mkdir()
    (inputs.sts / "2014").mkdir()
    text = (inputs.sts / "2012" / "a.tsv").read_text()
    for name in ("2013/OnWN", "2013/FNWN", "2014/images"):
        (inputs.sts / f"{name}.tsv").write_text(text)
    whole = revisiting.tables(inputs)["wg4"]
    cells = {
        row: Cell(options=cell.options.replace(dim=4, epochs=1)) for row, cell in whole.rows.items()
    }
    found = {cell: [run(cell, 1, inputs, cell_path(cell, 1, inputs))] for cell in cells.values()}
    small: Table = replace(whole, rows=cells)
    write(tmp_path / "wg4.md", small, found)
    written = (tmp_path / "wg4.md").read_text()
    assert "| Pearson × 100 | LSTM Avg | AVG | GRAN |" in written
    assert "(paper: 81.4) |\n" in written and "; paper: +8.6)" in written
    assert "| the paper's claim | STS 2013 OnWN | STS 2013 FNWN |\n" in written
    assert len(judgements(small, found)) == 2
    pair = CorrelationCell(first=cells["GRAN"], second=cells["AVG"])
    scores = pair.run(1, inputs, tmp_path / "correlation.json")
    sets = ["sick", "STS 2013 OnWN", "STS 2013 FNWN", "STS 2014 images"]
    both = [[found[cells[row]][0][name] for name in sets] for row in ("GRAN", "AVG")]
    assert scores["pearson"] == pytest.approx(100 * np.asarray(np.corrcoef(both))[0, 1], abs=1e-6)
    two = revisiting.tables(inputs)["wg3"]
    rows = {row: cells["GRAN"] if row == "GRAN" else cells["AVG"] for row in two.rows}
    write(tmp_path / "wg3.md", replace(two, rows=rows), found)
    written = (tmp_path / "wg3.md").read_text()
    assert "| SICK trial | W&G, oracle | W&G, 2016 STS |" in written
    assert "| 69.7 | 68.4 |\n" in written and "| – | – |\n" in written
    assert "| GRAN > BiGRAN (68.9 > 68.4, 69.5 < 69.7) |" in written
