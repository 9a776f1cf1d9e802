"""The tables of Wieting & Gimpel 2017: settings, figures and directions as printed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import revisiting, supervised
from benchmarks.experiments.cells import RESAMPLES, Cell, Inputs
from benchmarks.experiments.report import judgements, write
from benchmarks.experiments.revisiting import CorrelationCell
from benchmarks.experiments.tables import Table
from benchmarks.experiments.training import train
from paraloom.models.embeddings.datasets.similarity import SEMEVAL
from paraloom.models.embeddings.encoders import check_encoder
from paraloom.models.text.vectors import write_vectors
from tests.labelled import WORDS

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
        assert {*claim.rows} <= {*table.rows} and not table.shares_trainings(claim)


def test_the_trial_pairs_choose_the_epoch_if_there_are_test_pairs(inputs: Inputs) -> None:
    def held_out(name: str) -> set[float | None]:
        rows = supervised.tables(inputs)[name].rows.values()
        return {cell.options.similarity.held_out for cell in rows}

    assert held_out("wg5-sick") == {0.1}
    (inputs.sick / "SICK_test_annotated.txt").write_text("x")
    assert held_out("wg5-sick") == {None} and held_out("wg5-sts") == {0.1}
    assert supervised.tables(inputs)["wg5-sick"].measures["pearson"] == "SICK test"


def test_means_of_the_paper_are_over_the_data_sets_at_hand(inputs: Inputs) -> None:
    """Not its own means, 62.5 and 63.4, which have MSRvid and SMT."""
    there = {
        "2012": ("MSRpar", "MSRpar.train", "OnWN", "SMTeuroparl", "SMTnews"),
        "2013": ("FNWN", "OnWN", "headlines"),
        "2014": SEMEVAL["2014"],
        "2015": SEMEVAL["2015"],
    }
    for year, names in there.items():
        (inputs.sts / year).mkdir(exist_ok=True)
        for name in names:
            (inputs.sts / year / f"{name}.tsv").touch()
    tables = revisiting.tables(inputs)
    table = tables["wg4"]
    by_year = {year: table.paper["GRAN"][f"STS {year}"] for year in there}
    assert by_year == {"2012": 56.8, "2013": 71.0, "2014": 75.9, "2015": 77.7}
    assert "STS 2012 MSRvid" not in table.measures and len(table.measures) == 18 + 4 + 1
    correlated = tables["wg4-correlation"].paper
    assert [of["pearson"] for of in correlated.values()] == [97.6, 96.3, 97.6]
    (inputs.sts / "2012" / "MSRvid.tsv").touch()
    (inputs.sts / "2013" / "SMT.tsv").touch()
    of_all = revisiting.tables(inputs)["wg4"].paper["GRAN"]
    assert (of_all["STS 2012"], of_all["STS 2013"]) == (62.5, 63.4)  # as printed


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
    small: Table = replace(whole, rows=cells)
    found = train({"wg4": small}, 1, inputs, workers=1)
    assert all(scores["seconds"] > 0 for (scores,) in found.values())
    write(tmp_path / "wg4.md", small, found)
    written = (tmp_path / "wg4.md").read_text()
    assert "| Pearson × 100 | LSTM Avg | AVG | GRAN |" in written
    assert "(paper: 81.4) |\n" in written and "; paper: +8.6)" in written
    assert "| what the paper says | STS 2013 OnWN | STS 2013 FNWN |\n" in written
    ((_, verdicts),) = judgements(small, found)
    assert len(verdicts) == 2
    pair = CorrelationCell(first=cells["GRAN"], second=cells["AVG"])
    scores = pair.run(1, inputs, tmp_path / "correlation.json")
    sets = ["sick", "STS 2013 OnWN", "STS 2013 FNWN", "STS 2014 images"]
    both = [[found[cells[row]][0][name][0] for name in sets] for row in ("GRAN", "AVG")]
    expected = 100 * np.asarray(np.corrcoef(both))[0, 1]
    assert scores["pearson"][0] == pytest.approx(expected, abs=1e-6)
    assert len(scores["pearson"]) == 1 + RESAMPLES
    two = revisiting.tables(inputs)["wg3"]
    rows = {row: cells["GRAN"] if row == "GRAN" else cells["AVG"] for row in two.rows}
    write(tmp_path / "wg3.md", replace(two, rows=rows), found)
    written = (tmp_path / "wg3.md").read_text()
    assert "| SICK trial | W&G, oracle | W&G, 2016 STS |" in written
    assert "| 69.7 | 68.4 |\n" in written and "| – | – |\n" in written
    assert "| GRAN > BiGRAN (68.9 > 68.4, 69.5 < 69.7) |" in written
